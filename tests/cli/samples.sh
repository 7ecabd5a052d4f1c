# The samples that talk to the model: talk and complete, on the built-in model.
model=$root/models/galley-tiny
golden=$root/tests/golden/galley-tiny
talk=$build/bin/sample-talk
complete=$build/bin/sample-complete

# sample CODE PROGRAM ARG...: as expect, stdin as it is
sample() {
    local want=$1
    shift
    code=0
    "$@" >out 2>err || code=$?
    last="${1##*/} ${*:2}"
    [ "$code" -eq "$want" ] || fail "exit $code, not $want: $last: $(head -c 500 err)"
}

# A picture's text is what Hugging Face's transformers read with the same weights and frame.
for name in par list table; do
    sample 0 "$talk" "$model" "Convert to Markdown." --image "$golden/$name.png"
    json "$golden/$name.json" 'd["output_text"]' >want
    same out want
    silent
done

# The conversation is kept: the second answer is the model's continuation of the whole, spelled out.
# Tokens of a random text must differ by seed and agree with themselves.
dice="--temperature 1.5 --seed 7 --max-tokens 12"
printf 'The driver will telephone\n\nand the third pallet is\n' >lines
# shellcheck disable=SC2086 # words on purpose
sample 0 "$talk" "$model" --system "be brief" $dice <lines
[ "$(wc -l <out)" -eq 2 ] || fail "two messages, $(wc -l <out) answers"
cp out answers
first=$(head -1 answers)
[ -n "$first" ] || fail "no first answer"
prompt="<|im_start|>system
be brief<|im_end|>
<|im_start|>user
The driver will telephone<|im_end|>
<|im_start|>assistant
$first<|im_end|>
<|im_start|>user
and the third pallet is<|im_end|>
<|im_start|>assistant
"
# shellcheck disable=SC2086
sample 0 "$complete" "$model" "$prompt" $dice
[ "$(cat out)" = "$(tail -1 answers)" ] || fail "\"$(cat out)\" is not the second of $(cat answers)"
sample 0 "$complete" "$model" "$prompt" --temperature 1.5 --seed 8 --max-tokens 12
[ "$(cat out)" != "$(tail -1 answers)" ] || fail "the seed changes nothing"

# Stop strings, and what tokens were likely.
free="--temperature 3 --seed 2 --max-tokens 30"
# shellcheck disable=SC2086
sample 0 "$complete" "$model" "$prompt" $free
grep -qE '^[1-9][0-9]* tokens after [0-9]+, ended by' err || fail "complete says $(cat err)"
"$python" - <<'PY' || fail "no middle in $(cat out)"
text = open("out", encoding="utf-8").read()
at = len(text) // 2
stop = text[at:at + 3]
open("stop", "w", encoding="utf-8").write(stop)
open("want", "w", encoding="utf-8").write(text[:text.index(stop)])
assert len(text) > 10 and "\n" not in stop
PY
# shellcheck disable=SC2086
sample 0 "$complete" "$model" "$prompt" $free --stop "not in it" --stop "$(cat stop)"
same out want
says "ended by stop_string"
# shellcheck disable=SC2086
sample 0 "$complete" "$model" "$prompt" $free --logprobs 3
"$python" - <<'PY' || fail "logprobs: $(cat out)"
import re
rows = re.findall(r"^ *(\d+) +(-[\d.]+)  ((?:\d+:-[\d.]+ ?){3})", open("out", encoding="utf-8").read(), re.M)
assert len(rows) == int(re.search(r"(\d+) tokens after", open("err").read())[1]) > 3, rows
for chosen, logprob, top in rows:
    tops = [t.split(":") for t in top.split()]
    likely = [float(p) for _, p in tops]
    assert likely == sorted(likely, reverse=True) and float(logprob) <= likely[0], (chosen, top)
    assert all(float(p) == float(logprob) for i, p in tops if i == chosen), (chosen, top)
PY

# What cannot be is said in a sentence.
sample 2 "$talk"
says usage
sample 2 "$talk" "$model" hi there
sample 2 "$talk" "$model" hi --temperature hot
says "--temperature hot"
sample 2 "$talk" "$model" hi --seed
sample 2 "$complete" "$model"
sample 2 "$complete" "$model" hi --logprobs 21
says "--logprobs 21"
sample 1 "$talk" nowhere hi
says nowhere
sample 1 "$talk" "$model" hi --image missing.png
says "missing.png: No such file"
: >empty.png
sample 1 "$talk" "$model" hi --image empty.png
says "empty.png: empty"
sample 1 "$talk" "$model" hi --image lines
says "message 1, part 1"
expect 0 quantize "$model" blind.gguf --type q8_0 -q
rm mmproj-blind.gguf
sample 1 "$build/bin/sample-to_markdown" blind.gguf "$samples/letter.png"
says "no vision tower"
