"""report.py - three A4 pages in two columns: the sample with a bit of everything."""
from reportlab.lib.colors import HexColor
from reportlab.pdfgen import canvas

from blocks import Figure, Heading, List, Para, TableBlock, atoms_of, draw_at, truth_of
from grid import Table
from typeset import A4, Style, break_lines, draw_line, fill, fill_balanced, font_name

W, H = A4
LEFT, RIGHT, TOP, FOOT = 56, W - 56, H - 62, 66
GUTTER = 22
COL = (RIGHT - LEFT - GUTTER) / 2

BODY = Style('serif', 10, 12.6, 'justify', indent=0, after=6)
LEAD = Style('serif', 10.5, 13.4, 'justify', after=12)
TITLE = Style('sans', 21, 25, 'left', bold=True, after=4)
BYLINE = Style('serif', 11, 14, 'left', italic=True, after=12)
H1 = Style('sans', 13, 16, 'left', bold=True, before=12, after=5)
H2 = Style('sans', 11, 14, 'left', bold=True, before=9, after=3)
ITEM = Style('serif', 10, 12.6, 'left', after=2.5)
CAPTION = Style('sans', 8.5, 10.8, 'left', before=8, after=8)
NOTE = Style('serif', 8, 10, 'left')

FRONT = [
    Heading(1, 'Reading Against the Copy: How a Small Printing House Checks Its Proofs', TITLE),
    Para('Clara Benn\u00e9 and Tom\u00e1s Weir, Harbour Lane Press', BYLINE),
    Para('Every page that leaves a press has been read at least twice by people who were not its '
         'authors. This report describes how a house of nine employees reads its proofs, what that '
         'reading costs, and which errors it still lets through. The figures were collected over '
         'eighteen months and cover 214 jobs, from visiting cards to a county history in two '
         'volumes.', LEAD),
]
PAGE1 = [
    Heading(2, '1 Why proofs are read', H1),
    Para('A compositor who sets a page sees letters, not sentences. The better the compositor, the '
         'more completely the meaning disappears behind spacing, alignment and the fit of the line. '
         'This is a strength while the type is being set and a weakness the moment it is finished, '
         'because the same eye that could not be distracted by the sense of a paragraph cannot be '
         'alarmed by its nonsense either.', BODY),
    Para('The proof gives the page to a second reader. It is pulled on cheap paper, its margins are '
         'wide, and nobody minds if it is covered with ink. In the old shops the long tray that held '
         'the type was called a *galley*, and the first print taken from it kept the name. Our type '
         'is made of numbers today, but the sheet is still called a galley proof, and the rule on '
         'the wall has not changed: **nothing is printed that has not been read against the '
         'copy**.', BODY),
    Heading(3, '1.1 Three kinds of error', H2),
    Para('We sort what the readers find into three classes, since each of them is caught by a '
         'different kind of attention:', BODY, tied=True),
    List([('-', 'literal errors, in which a character is wrong:', [
              ('-', 'transposed or doubled letters;', []),
              ('-', 'a wrong fount, such as an italic comma in roman text;', [])]),
          ('-', 'errors of sense, where the words are spelled correctly and mean the wrong thing;', []),
          ('-', 'errors of form, which concern the page: a heading at the foot of a column, a table '
                'that has lost a rule, a number in the wrong place.', [])], ITEM),
    Para('Literal errors are the most frequent and the cheapest. Errors of sense are rare, but a '
         'single one of them can cost more than a whole month of misspellings; in the autumn of the '
         'first year an invitation named the right hall and the wrong Thursday, and we printed it '
         'again at our own expense.[^1] Errors of form are seldom noticed by authors at all. They '
         'are noticed by everybody else.', BODY),
    Heading(3, '1.2 Who reads', H2),
    Para('Two people read together whenever the budget of the job allows it. One of them, the '
         'copyholder, reads the manuscript aloud, with its punctuation; the other follows on the '
         'proof and marks it. The method is slow and a little comical to visitors, who hear a '
         'grave voice announcing commas and capitals through the door. It has one great merit: the '
         'reader with the pencil never looks away from the proof, and so never reads what ought to '
         'be there instead of what is.', BODY),
    Para('Where only one reader is available the proof is read twice, first for the letters and then, '
         'after a pause of at least an hour, for the sense. We have found no way to do both at once. '
         'The second reading is the one that suffers when a deadline is close, and the record shows '
         'it quite plainly.', BODY),
    Para('Authors read too, of course, but an author is the worst reader of all. Nobody can find in a '
         'text what he has already forgiven himself for writing, and the names, dates and titles that '
         'an author alone could check are the very words he knows too well to look at. We therefore '
         'ask for one thing only: that the author should go through the proof with a ruler, line by '
         'line, and touch every proper noun with the point of a pencil. About half of them do. The '
         'others thank us for a beautiful page, and telephone on the day after publication.', BODY),
    Heading(3, '1.3 Marks and colours', H2),
    Para('The marks are those of the national standard, with two additions of our own. Printer\'s '
         'errors are marked in green and author\'s alterations in red, so that the account can be '
         'settled without argument; a question is written in pencil, because it may turn out to have '
         'been a foolish one. The colour is chosen before the mark is made. It sounds a small matter, '
         'but before this rule was introduced we carried out 61 corrections that nobody had wanted.', BODY),
    Para('A proof without marks is a bad sign. It has happened that a reader returned the wrong sheet, '
         'and the clean page was passed. Since then a reader who has found nothing writes *nil* at the foot '
         'and signs it. In eighteen months we have seen that word on 19 sheets out of 2,640.', BODY),
]
NOTES1 = {1: 'The customer kept both versions. A copy of each hangs in the composing room, next to the '
             'list of holidays.'}


def chart(c, x, top, width, height):
    """Errors found per thousand lines by each reading: a bar chart in vectors."""
    bars = [('First', 41, '#8c3b2e'), ('Second', 17, '#b9725f'), ('Author', 9, '#c9a28f'), ('Press', 4, '#8a8f98')]
    base, plot = top - height + 18, height - 30
    c.saveState()
    c.setFont(font_name('sans'), 7.5)
    for k in range(0, 51, 10):
        y = base + plot * k / 50
        c.setStrokeColor(HexColor('#d8d8d8'))
        c.setLineWidth(0.4)
        c.line(x + 22, y, x + width, y)
        c.setFillColor(HexColor('#404040'))
        c.drawRightString(x + 18, y - 2.5, str(k))
    step = (width - 30) / len(bars)
    for i, (name, value, color) in enumerate(bars):
        left = x + 30 + i * step + step * 0.14
        c.setFillColor(HexColor(color))
        c.rect(left, base, step * 0.72, plot * value / 50, stroke=0, fill=1)
        c.setFillColor(HexColor('#202020'))
        c.drawCentredString(left + step * 0.36, base + plot * value / 50 + 3, str(value))
        c.drawCentredString(left + step * 0.36, base - 10, name)
    c.setStrokeColor(HexColor('#202020'))
    c.setLineWidth(0.8)
    c.line(x + 22, base, x + width, base)
    c.restoreState()


PAGE2 = [
    Heading(2, '2 How a proof travels', H1),
    Para('A proof is a loose sheet, and loose sheets go astray. Each one therefore carries a slip '
         'with the number of the job, the number of the reading and the initials of whoever has it '
         'now. The slip is the only document in the house that may never be tidied away. It goes '
         'through the following stations:', BODY, tied=True),
    List([('1.', 'The compositor pulls two copies and files one of them.', []),
          ('2.', 'The first reading compares the proof with the copy:', [
              ('-', 'every mark is made twice, in the line and in the margin;', []),
              ('-', 'a query to the author is ringed, so that it is not mistaken for a '
                    'correction.', [])]),
          ('3.', 'The compositor corrects, and initials each mark as it is dealt with.', []),
          ('4.', 'The second reading is made by somebody else, from a fresh proof.', []),
          ('5.', 'The author receives a clean proof and one week to return it.', [])], ITEM),
    Para('Station 3 deserves a remark. Corrections are a source of errors in their own right, as '
         'everyone knows who has mended one word and broken its neighbour. When a line is changed, '
         'the lines around it are read again from the beginning of the paragraph to its end, and if '
         'the change has moved a line to another page, both pages are.', BODY),
    Heading(3, '2.1 Queries', H2),
    Para('A query costs more time than a correction, since it has to travel to the author and back. We '
         'allow ourselves one for every two pages. What cannot be asked is decided by the house rules, '
         'a bound volume of 84 pages that settles the capitals of public offices, the plural of '
         '*formula*, and the vexed question of the space before a unit. Where the rules are silent the '
         'dictionary decides, and where the dictionary allows two spellings we take the one that the '
         'author has used first.', BODY),
    Para('Queries are numbered through the whole job. The author answers in the margin with yes, no or '
         'a new wording; an answer that is longer than the line it belongs to is typed, so that nobody '
         'has to guess at a hasty hand. An unanswered query is not a yes. The compositor leaves the '
         'line as it was in the copy, and the slip records that the question was put.', BODY),
    Heading(2, '3 What the readings find', H1),
    Para('Over the eighteen months the first reading found 41 errors in a thousand lines, the second '
         'another 17. Authors returned their proofs with nine more, although most of these were '
         'changes of mind and not mistakes. Four errors in a thousand lines were discovered on the '
         'press or after it, which is to say too late.', BODY),
    Figure('figure-p2-1.png', 132, chart,
           'Figure 1. Errors found per thousand lines, by the reading that found them. The last bar '
           'counts what was seen only when the sheets were already printed.', CAPTION),
    Para('The fall from one bar to the next is what one would hope for. What surprised us was the '
         'second reading: we had expected it to find a quarter of what the first one finds, and it '
         'finds more than a third. Two explanations were offered. Either the first reading is worse '
         'than we believed, or the corrections themselves feed the second. An experiment with thirty '
         'jobs, in which the marks of the first reading were kept but not carried out, favours the '
         'latter.', BODY),
    Heading(3, '3.1 The cost of an hour', H2),
    Para('An hour of reading covers between 320 and 400 lines of plain text, and rather less than half '
         'of that when there are tables. At the wages of last year an error found at the first '
         'reading costs about 0.90 euro, one found at the second 2.10 euro. An error found on the '
         'press costs 74 euro on average, mostly for paper. It follows that a third reading would '
         'pay for itself if it caught no more than one error in 35 hours, and we have begun to make '
         'one for any job of more than two hundred pages.', BODY),
    Para('This calculation leaves out what cannot be counted, such as the goodwill of a customer whose '
         'name was spelled with one *n* on the cover and with two inside. It also leaves out the '
         'readers, who do not enjoy a third reading and say so.', BODY),
    Heading(3, '3.2 Errors that stay', H2),
    Para('Some errors survive every reading. They sit in places where nobody looks, because nobody '
         'believes that anything could go wrong there: on the spine, in the running title, in the '
         'largest line of the cover. Of the 31 errors that were reported to us after delivery, eleven '
         'stood in type larger than 18 points. A reader who has learned to examine commas does not '
         'see a word that is as tall as a thumb.', BODY),
    Para('We have since made it a habit to read the display lines last, on their own, and backwards. It '
         'takes three minutes for a book, and it is the only part of the work that makes people in '
         'the composing room laugh.', BODY),
]
TABLE = Table([(118, 'left'), (58, 'right'), (68, 'right'), (68, 'right'), (171, 'left')],
              [['Kind of work', 'Jobs', 'Lines', 'Errors left', 'Most frequent error'],
               ['Books', '23', '188,400', '3.1', 'Hyphenation at the end of a page'],
               ['Journals', '36', '97,250', '4.4', 'Reference to the wrong figure'],
               ['Programmes', '58', '21,900', '2.6', 'Time of the interval'],
               ['Price lists', '41', '34,780', '6.9', 'Figure in the wrong column'],
               ['Cards and notices', '56', '2,310', '1.7', 'Name or title of a person']],
              'all', tint=True, size=9, pad=4.2)
REFERENCE = Style('serif', 9.5, 12, 'left', after=3)
WIDE = Style('serif', 10.5, 13.6, 'justify', after=7)
PAGE3 = [
    Heading(2, '4 Results by kind of work', H1),
    Para('The average hides large differences. Table 1 lists the five kinds of work that make up our '
         'trade. Price lists are the worst by far: their lines are short, nothing in '
         'them can be guessed from the context, and a wrong digit looks exactly as respectable as a '
         'right one. We now read them *column by column and from the bottom up*, which is tedious and '
         'has cut the rate to about two thirds of the value in the table.', WIDE),
    Para('Table 1. Errors per thousand lines that were left after the second reading.',
         Style('sans', 8.5, 10.8, 'left', before=6, after=4), tied=True),
    TableBlock(TABLE),
    Heading(2, '5 Conclusions', H1),
    Para('We draw three conclusions, and offer them to other houses of our size.', WIDE, tied=True),
    List([('1.', '**Read for one thing at a time.** Whoever looks for letters does not see dates.', []),
          ('2.', '**Correct little, and look at what was corrected.** One error in six was made while '
                 'another one was being removed.', []),
          ('3.', '**Let the machine go first.** Spelling is checked by a program before the first '
                 'reading, and its list of suspects is handed to the reader, who decides. It is never '
                 'applied unseen.', [])], Style('serif', 10.5, 13.6, 'left', after=3)),
    Para('Our forms, including the slip of section 2, can be copied freely. They are kept at '
         '[harbourlane.example/forms](https://harbourlane.example/forms), together with the raw counts '
         'behind the figures of this report. Questions are answered by the reading room, and we are '
         'grateful for any misprint that is reported to us; a prize of one bound notebook is offered '
         'for each.', WIDE),
    Heading(3, '5.1 What we did not measure', H2),
    Para('We did not measure how tired the readers were, how well they knew the subject, or whether '
         'the weather mattered, although the opinion of the reading room is that it does. The 214 '
         'jobs were not chosen at random, and 12 of them were read by a colleague who has since '
         'opened a bakery. The difference between books and journals is within what chance alone '
         'could produce; the difference between price lists and everything else is not.', WIDE),
    Heading(2, 'References', H1),
    List([('1.', 'M. Orford, *The Corrector and His Pencil*, Quayside Books, 1987.', []),
          ('2.', 'L. Sz\u00e9kely and P. Adair, "Reading aloud: an experiment", *Annals of the Trade* 14, '
                 'pp. 201-219.', []),
          ('3.', 'House rules of the Harbour Lane Press, sixth edition, mimeographed.', [])], REFERENCE),
]


def furniture(c, page):
    """Running header and footer: not part of the truth."""
    c.setFillColor(HexColor('#505050'))
    c.setStrokeColor(HexColor('#909090'))
    c.setLineWidth(0.5)
    c.setFont(font_name('sans'), 8)
    c.drawString(LEFT, H - 42, 'Harbour Lane Press')
    c.drawRightString(RIGHT, H - 42, 'Reading Against the Copy')
    c.line(LEFT, H - 47, RIGHT, H - 47)
    c.drawString(LEFT, 40, 'Report 7, revised edition')
    c.drawRightString(RIGHT, 40, str(page))


def footnotes(texts):
    """Number -> (height, draw) for fill()."""
    out = {}
    for n, text in texts.items():
        lines = break_lines(text, NOTE, COL - 8)

        def draw(c, x, base, n=n, lines=lines):
            y = base + len(lines) * NOTE.leading
            c.setStrokeColor(HexColor('#404040'))
            c.setLineWidth(0.5)
            c.line(x, y + 3, x + 60, y + 3)
            c.setFillColor(NOTE.color)
            c.setFont(font_name('serif'), 5.5)
            c.drawString(x, y - NOTE.size + 3, str(n))
            for line in lines:
                draw_line(c, line, NOTE, x + 8, y - NOTE.size)
                y -= NOTE.leading
        out[n] = (len(lines) * NOTE.leading + 12, draw)
    return out


def make(path):
    """Draws the report; returns its true Markdown."""
    c = canvas.Canvas(path, pagesize=A4, invariant=1)
    c.setTitle('Reading Against the Copy')
    c.setAuthor('Harbour Lane Press')
    columns = [LEFT, LEFT + COL + GUTTER]
    furniture(c, 1)
    y = draw_at(c, FRONT, LEFT, TOP, RIGHT - LEFT) - 14
    foot = fill_balanced(c, atoms_of(PAGE1, COL), [(x, y, FOOT) for x in columns], footnotes(NOTES1))
    c.showPage()
    furniture(c, 2)
    foot2 = fill_balanced(c, atoms_of(PAGE2, COL), [(x, TOP, FOOT) for x in columns])
    c.showPage()
    furniture(c, 3)
    rest = fill(c, atoms_of(PAGE3, RIGHT - LEFT), [(LEFT, TOP, FOOT)])
    assert not rest, len(rest)
    c.save()
    print(f'report: columns end at {foot} and {foot2} of {FOOT}')
    notes = '\n\n'.join(f'[^{n}]: {text}' for n, text in NOTES1.items())
    return '\n\n'.join([truth_of(FRONT + PAGE1), notes, truth_of(PAGE2), truth_of(PAGE3)])
