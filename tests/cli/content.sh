# What the options change in the output: pages, marks between them, furniture, figures, formats.
doc=$samples/report.pdf
expect 0 convert "$doc" --pages 2- -o 2-.md
expect 0 convert "$doc" --pages 2,3 -o 2,3.md
same 2-.md 2,3.md
expect 0 convert "$doc" -o all.md --figures pictures --format md
silent

# Page breaks: a comment before each page in Markdown, a form feed between pages in text.
expect 0 convert "$doc" --page-break
grep -o '<!-- page [0-9]* -->' out
grep -v '<!-- page' out | cat -s | sed '1{/^$/d}' >without.md
same without.md all.md "--page-break changes more than the marks"
expect 0 convert "$doc" --page-break --format text
[ "$(tr -cd '\f' <out | wc -c)" -eq 2 ] || fail "three pages have two breaks"
expect 0 convert "$doc" --format text
[ "$(tr -cd '\f' <out | wc -c)" -eq 0 ] || fail "a form feed without --page-break"
! grep -qE '^#|\*\*|!\[' out || fail "Markdown in text: $(grep -E '^#|\*\*|!\[' out | head -n 3)"

# Furniture: running heads and page numbers appear on demand, the rest stays.
expect 0 convert "$doc" --furniture keep
cp out kept.md
expect 0 convert "$doc" --furniture drop
same out all.md
[ "$(wc -l <kept.md)" -gt "$(wc -l <all.md)" ] || fail "--furniture keep keeps nothing"
[ "$(diff all.md kept.md | grep -c '^<')" -eq 0 ] ||
    fail "--furniture keep loses text: $(diff all.md kept.md | grep '^<')"

# Figures: every name in the Markdown is a PNG in the folder, and nothing else is there.
grep -o '!\[[^]]*\]([^)]*)' all.md | sed 's/.*(\(.*\))/\1/' | sort >named
[ -s named ] || fail "report.pdf has a figure"
while read -r name; do
    [ "$(head -c 8 "pictures/$name" | od -An -tx1 | tr -d ' \n')" = 89504e470d0a1a0a ] ||
        fail "pictures/$name is no PNG"
done <named
find pictures -type f -printf '%f\n' | sort >found
same named found "figures named and written"

# Figures of several inputs share a folder and keep apart.
cp "$samples/report.pdf" r1.pdf
cp "$samples/report.pdf" r2.pdf
expect 0 convert r1.pdf r2.pdf -o two/ --figures two
[ "$(cat two/*.md | grep -o '!\[[^]]*\]([^)]*)' | sort -u | wc -l)" -eq "$(find two -name '*.png' | wc -l)" ] ||
    fail "two reports, figures: $(ls two)"
[ "$(find two -name '*.png' | wc -l)" -eq $((2 * $(wc -l <named))) ] || fail "figures overwrite each other: $(ls two)"

# HTML: one section per page, balanced, escaped; no Markdown left.
expect 0 convert "$doc" --format html
grep -o '<section id="page-[0-9]*" data-status="[a-z]*">' out
for tag in html head body title section table; do
    [ "$(grep -o "<$tag[ >]" out | wc -l)" -eq "$(grep -o "</$tag>" out | wc -l)" ] || fail "<$tag> is not closed"
done
prints '<meta charset="utf-8">'
prints '<table>'
! grep -qE '^#+ |^\| ' out || fail "Markdown in HTML"
cp "$samples/invoice.pdf" '<b>&"x.pdf'
expect 0 convert '<b>&"x.pdf' --format html
prints '<title>&lt;b&gt;&amp;&quot;x.pdf</title>'

# JSON: the described shape, and the same text as Markdown.
for doc in report.pdf invoice.pdf letter.png tables.pdf korean.pdf; do
    expect 0 convert "$samples/$doc" --pages 1 --format json
    "$python" "$root/tests/cli/check_json.py" document out "$samples/$doc" >&2 || fail "$doc: JSON"
done
expect 0 convert "$samples/report.pdf" --format json
json out "'\n\n'.join(p['markdown'] for p in d['pages'])" >text.md
same text.md all.md "JSON and Markdown"
json out '[(p["page"], p["status"]) for p in d["pages"]]'

# Statistics: all keys, to a file and to standard output.
expect 0 convert "$samples/invoice.pdf" -o x.md --stats stats.json
"$python" "$root/tests/cli/check_json.py" stats stats.json >&2 || fail "--stats"
expect 0 convert "$samples/invoice.pdf" -o x.md --stats -
"$python" "$root/tests/cli/check_json.py" stats out >&2 || fail "--stats -"
json stats.json '(d["pages"], d["regions"] > 5, d["drafted"] > 100, d["accepted"] > 100, d["accept_length"] > 2)'

# The light parser's own view needs no model.
expect 0 inspect "$samples/report.pdf" --pages 1,2 --regions seen.png
exists seen.png
exists seen-p2.png
prints 'page 2: ok'
expect 0 inspect "$samples/report.pdf" --json
json out '(len(d["pages"]), {r["accept"]["rule"] for p in d["pages"] for r in p["regions"]})'
