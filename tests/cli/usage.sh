# Wrong use: exit 2 and one sentence on stderr that names what is wrong; nothing on stdout.
pdf=invoice.pdf
cp "$samples/invoice.pdf" "$samples/letter.png" .

wrong() {
    expect 2 "$@"
    [ ! -s out ] || fail "$last wrote to stdout"
    [ "$(wc -l <err)" -eq 1 ] || fail "$last says more than one line: $(cat err)"
    cat err
}

wrong bogus
wrong help bogus
wrong convert
wrong convert --bogus $pdf
wrong convert -z $pdf
wrong convert --format
wrong convert -o
wrong convert --format xml $pdf
wrong convert --format '' $pdf
wrong convert --draft maybe $pdf
wrong convert --furniture some $pdf
wrong convert --linear exactly $pdf
wrong convert --page-break=3 $pdf
wrong convert --quiet --verbose $pdf
for value in 0 -1 1.5 nan inf exactly '' 1x; do
    wrong convert --accept "$value" $pdf
done
for value in 0 17 1201 nan '' 200dpi; do
    wrong convert --dpi "$value" $pdf
done
for option in --min-pixels --max-pixels --max-new-tokens --threads; do
    for value in 0 -5 1.5 '' 12k 99999999999999999999; do
        wrong convert $option "$value" $pdf
    done
done
wrong convert --min-pixels 5000 --max-pixels 4000 $pdf
for value in 0 2 9-1 1-9 a , '' 1,,1 1-1-1 99999999999; do
    wrong convert --pages "$value" $pdf
done
wrong convert --ocr-lang '' letter.png
wrong convert --ocr-lang ../eng letter.png
wrong convert --output '' $pdf
wrong convert --stats x $pdf letter.png
wrong convert --regions x.png $pdf
wrong convert --json $pdf
wrong convert -o one.md $pdf letter.png
wrong convert -o $pdf $pdf
wrong convert -o ./$pdf $pdf
wrong inspect
wrong inspect $pdf letter.png
wrong inspect --format md $pdf
wrong inspect --draft none $pdf
wrong inspect --regions x.png .
wrong doctor x
wrong doctor --pages 1
cmp $pdf "$samples/invoice.pdf" || fail "an input was changed"
