# Models and documents that cannot be used: the exit status and a sentence that names them.
doc=$samples/invoice.pdf
model=$root/models/galley-tiny

mkdir empty
cp -r "$model" cut
head -c 100000 "$model/model.safetensors" >cut/model.safetensors
mkdir -p no-weights
cp "$model"/*.json no-weights/
cp -r "$model" bad-config
echo '{' >bad-config/config.json
for dir in missing empty cut no-weights bad-config "$doc" ''; do
    expect 3 convert --model "$dir" "$doc" -o x.md
    [ "$(wc -l <err)" -eq 1 ] || fail "--model \"$dir\": $(cat err)"
    absent x.md
done
expect 3 convert --model cut "$doc"
says cut
GALLEY_MODEL=missing expect 3 convert "$doc"
says missing
GALLEY_MODEL=missing expect 0 convert --model "$model" "$doc"
GALLEY_MODEL=$model expect 0 convert "$doc"
GALLEY_CPU=vax expect 2 convert "$doc"
says vax
GALLEY_MODEL=missing expect 3 doctor
expect 0 doctor
expect 0 inspect "$model"

# Documents: empty, no file, a folder, no document, formats that are named.
: >empty.pdf
expect 4 convert empty.pdf
says empty
expect 4 convert missing.pdf
says 'No such file'
expect 4 convert .
expect 4 convert "$root/src/galley.h"
printf 'RIFF\x24\0\0\0WEBPVP8 ' >picture.webp
expect 4 convert picture.webp
says WebP
printf 'II*\0\x08\0\0\0\0\0' >picture.tiff
expect 4 convert picture.tiff
says TIFF
expect 4 convert "$samples/letter.png" --ocr-lang tlh
says tesseract-ocr-tlh

# Encrypted: the user's password, the owner's, none, a wrong one.
command -v qpdf >/dev/null || fail "qpdf is missing (tools/packages.txt)"
qpdf --encrypt open sesame 256 -- "$doc" locked.pdf
expect 5 convert locked.pdf -o x.md
says password
absent x.md
expect 5 convert locked.pdf --password wrong
expect 0 convert "$doc"
cp out truth.md
for word in open sesame; do
    expect 0 convert locked.pdf --password $word
    same out truth.md "--password $word"
done
expect 0 convert "$doc" --password unneeded
expect 5 inspect locked.pdf
expect 0 inspect locked.pdf --password open
expect 7 convert locked.pdf "$doc" -o both/

# A context that holds none of the page's parts: the drafts are kept, and what it would take is said;
# without drafts the text is missing.
expect 0 convert "$samples/invoice.pdf" --ctx 16 -o short.md
says "unverified: "
says "tokens and one to write, has 16: use a longer context"
expect 0 convert "$samples/invoice.pdf" -o whole.md
[ "$(wc -w <short.md)" -gt "$(($(wc -w <whole.md) / 2))" ] || fail "the drafts were not kept"
expect 7 convert "$samples/invoice.pdf" --ctx 16 --draft none
says "unverified: "
