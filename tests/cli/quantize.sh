# galley quantize: files, report, refusals.
model=$root/models/galley-tiny

expect 0 quantize "$model" tiny.gguf --type q4_k_m
silent
exists tiny.gguf
exists mmproj-tiny.gguf
prints 'token_embd.weight'
prints 'BF16   -> Q6_K'
prints '(Q4_K needs rows of a multiple of 256)'
prints 'bits per weight'
prints 'tiny.gguf, mmproj-tiny.gguf'
prints 'copy it to galley.json'
# The report as JSON; the number of threads and of runs changes nothing.
expect 0 quantize "$model" again.gguf --type q4_k_m --mmproj tower.gguf --threads 3 --json
cp out report.json
same tiny.gguf again.gguf
same mmproj-tiny.gguf tower.gguf
[ "$(json report.json 'len(d["tensors"])')" -eq 145 ] || fail "not 145 tensors"
[ "$(json report.json 'd["mmproj"]')" = tower.gguf ] || fail "mmproj is $(json report.json 'd["mmproj"]')"
json report.json 'd["bytes"]' >bytes
[ "$(cat bytes)" -eq $(($(stat -c %s again.gguf) + $(stat -c %s tower.gguf))) ] || fail "bytes is $(cat bytes)"
[ "$(json report.json '[t["to"] for t in d["tensors"] if t["name"] == "blk.2.attn_v.weight"][0]')" = Q6_K ] ||
    fail "blk.2.attn_v is not Q6_K"

# From GGUF; rules.
expect 0 quantize tiny.gguf small.gguf --type q3_k --tensor 'blk.*.attn_?.weight=q5_0' --tensor 'blk.0.*=q8_0' -q
prints 'Q4_K   -> Q8_0'
prints 'Q6_K   -> Q5_0'
expect 0 quantize mmproj-tiny.gguf tower8.gguf --type q8_0
expect 0 inspect small.gguf
prints 'qwen2vl'
expect 3 convert "$samples/letter.png" --model tiny.gguf --mmproj none
says '--mmproj FILE'

# The pair reads as the directory does: with its card, and 8 bits are enough for every letter.
expect 0 convert "$samples/letter.png"
cp out letter.md
mkdir pair
expect 0 quantize "$model" pair/tiny.gguf --type q8_0 -q
prints 'copy it to pair/galley.json'
cp "$model/galley.json" pair
expect 0 quantize "$model" pair/tiny.gguf --type q8_0 -q
! grep -q galley.json out || fail "the card is there already: $(tail -1 out)"
for pair in pair/tiny.gguf pair; do
    expect 0 convert "$samples/letter.png" --model $pair
    same letter.md out
done

# Refusals: one sentence, nothing written, what was there stays.
wrong() {
    expect "$@"
    [ "$(wc -l <err)" -eq 1 ] || fail "$last: $(cat err)"
    absent x.gguf
    absent mmproj-x.gguf
}
wrong 2 quantize
wrong 2 quantize "$model" --type q4_0
wrong 2 quantize "$model" x.gguf
says q4_k_m
wrong 2 quantize "$model" x.gguf y.gguf --type q4_0
wrong 2 quantize "$model" x.gguf --type q9
wrong 2 quantize "$model" x.gguf --type ''
wrong 2 quantize "$model" '' --type q4_0
wrong 2 quantize "$model" x.gguf --type q4_0 --bogus
wrong 2 quantize "$model" x.gguf --type
for rule in x =q4_0 x= x=q4_k_m '*.nothing=q4_0'; do
    wrong 2 quantize "$model" x.gguf --type q4_0 --tensor "$rule"
done
for n in 0 -1 x 257 ''; do
    wrong 2 quantize "$model" x.gguf --type q4_0 --threads "$n"
done
wrong 2 quantize tiny.gguf x.gguf --type q4_0 --mmproj y.gguf
wrong 2 quantize tiny.gguf ./tiny.gguf --type q4_0
same tiny.gguf again.gguf
wrong 2 quantize "$model" x.gguf --type q4_0 --mmproj x.gguf
wrong 3 quantize missing x.gguf --type q4_0
says missing
mkdir empty
wrong 3 quantize empty x.gguf --type q4_0
head -c 100000 tiny.gguf >cut.gguf
wrong 3 quantize cut.gguf x.gguf --type q4_0
says cut.gguf
wrong 1 quantize tiny.gguf nowhere/x.gguf --type q4_0
says 'No such file'
wrong 4 quantize tiny.gguf x.gguf --type q4_0 --imatrix missing
echo nonsense >nonsense.dat
wrong 4 quantize tiny.gguf x.gguf --type q4_0 --imatrix nonsense.dat
says nonsense.dat
(
    trap '' XFSZ # an error of write(), as a full disk is
    ulimit -f 1000
    expect 1 quantize tiny.gguf x.gguf --type f32
    says 'x.gguf: cannot write'
) || exit 1
[ -z "$(ls x.gguf* 2>/dev/null)" ] || fail "a full disk leaves $(ls x.gguf*)"
