"""korean.py - a born-digital page in Korean: headings, paragraphs, a list, a table."""
from reportlab.pdfgen import canvas

from blocks import Heading, List, Para, TableBlock, atoms_of, truth_of
from grid import Table
from typeset import A4, Style, fill

W, H = A4
LEFT, RIGHT, TOP, FOOT = 70, W - 70, H - 72, 60
TITLE = Style('nanum', 19, 26, 'left', bold=True, after=10)
H2 = Style('nanum', 13, 19, 'left', bold=True, before=14, after=5)
TEXT = Style('nanum', 10.5, 17, 'left', after=8)
ITEM = Style('nanum', 10.5, 17, 'left', after=3)
CAPTION = Style('nanum', 9, 14, 'left', before=4, after=4)

HOURS = Table([(120, 'left'), (95, 'right'), (95, 'right'), (145, 'left')],
              [['작업', '쪽수', '시간', '담당자'],
               ['단행본', '1,284', '96', '김서연'],
               ['잡지', '760', '71', '박도윤'],
               ['안내서', '215', '18', '이하은'],
               ['명함', '48', '3', '최민준']], 'all', size=10, family='nanum', pad=5)

BLOCKS = [
    Heading(1, '교정지를 읽는 사람들', TITLE),
    Para('책 한 권이 인쇄되기까지 원고는 적어도 두 번 다시 읽힌다. 글을 쓴 사람이 아니라 다른 사람이 '
         '읽는다는 점이 중요하다. 쓴 사람의 눈은 종이에 있는 글자가 아니라 머릿속에 있는 문장을 보기 '
         '때문이다. 이 글은 작은 인쇄소의 교정실에서 열여덟 달 동안 적은 기록을 간추린 것이다.', TEXT),
    Heading(2, '1. 교정의 순서', H2),
    Para('교정지는 한 장짜리 종이라서 잃어버리기 쉽다. 그래서 모든 교정지에는 작업 번호와 읽은 사람의 '
         '이름을 적은 쪽지가 따라다닌다. 첫 번째 교정에서는 두 사람이 함께 앉는다. 한 사람이 원고를 '
         '소리 내어 읽으면 다른 사람이 교정지를 눈으로 따라가며 틀린 곳에 표시를 한다. 느린 방법이지만 '
         '눈이 교정지를 떠나지 않는다는 장점이 있다.', TEXT),
    Para('교정실에서 지키는 규칙은 다음과 같다.', TEXT, tied=True),
    List([('-', '한 번에 한 가지만 본다. 글자를 찾는 사람은 날짜를 보지 못한다.', []),
          ('-', '고친 줄은 문단의 처음부터 끝까지 다시 읽는다.', []),
          ('-', '확실하지 않은 것은 고치지 않고 저자에게 묻는다.', []),
          ('-', '제목과 표지의 큰 글자는 맨 마지막에 따로 읽는다.', [])], ITEM),
    Heading(2, '2. 무엇이 남는가', H2),
    Para('첫 번째 교정에서는 천 줄에 41개, 두 번째 교정에서는 17개의 오류가 발견되었다. 인쇄가 끝난 '
         '뒤에 발견된 오류는 4개였다. 남은 오류의 대부분은 아무도 들여다보지 않는 곳, 곧 책등이나 '
         '쪽 머리글이나 표지의 가장 큰 줄에 있었다. 엄지손가락만큼 큰 글자는 너무 커서 오히려 보이지 '
         '않는다.', TEXT),
    Para('**비용도 따져 보았다.** 첫 번째 교정에서 오류 하나를 찾는 데에는 약 1,200원이 들고, 두 번째 '
         '교정에서는 2,800원이 든다. 인쇄기 위에서 찾은 오류는 하나에 평균 98,000원이 들었는데, 대부분 '
         '버려진 종이의 값이다.', TEXT),
    Para('표 1. 2026년 상반기 교정 작업', CAPTION, tied=True),
    TableBlock(HOURS),
    Para('양식과 기록은 누구나 자유롭게 쓸 수 있다. 이 글에서 틀린 글자를 찾은 독자에게는 공책 한 권을 '
         '보내 드린다.', TEXT),
]


def make(path):
    """Draws the page; returns its true Markdown."""
    c = canvas.Canvas(path, pagesize=A4, invariant=1)
    c.setTitle('교정지를 읽는 사람들')
    rest = fill(c, atoms_of(BLOCKS, RIGHT - LEFT), [(LEFT, TOP, FOOT)])
    assert not rest, len(rest)
    c.save()
    return truth_of(BLOCKS)
