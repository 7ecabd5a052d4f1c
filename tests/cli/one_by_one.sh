# A page converted alone is what it is in the whole document: its running head is still no text.
doc=$samples/report.pdf
expect 0 convert "$doc" --page-break -o all.md
for page in 1 2 3; do
    expect 0 convert "$doc" --pages $page --page-break -o "$page.md"
    [ $page -eq 1 ] || echo >>each.md
    cat "$page.md" >>each.md
done
same each.md all.md
