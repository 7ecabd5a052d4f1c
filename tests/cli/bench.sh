# galley bench: table, JSON, CSV and plot tell the same story; inspect --plan counts before it loads.
model=$root/models/galley-tiny
few="--requests 3 --prompt 12 --output 5"
# shellcheck disable=SC2086 # words on purpose
expect 0 bench --model "$model" $few --concurrency 1,2 --csv b.csv --plot b.svg --quiet
silent
prints "at once"
[ "$(wc -l <b.csv)" -eq 3 ] || fail "b.csv has $(wc -l <b.csv) lines"
"$python" - <<'PY' || fail "b.csv or b.svg is not what it should be"
import csv
import re
import xml.dom.minidom
rows = list(csv.DictReader(open("b.csv")))
assert [r["concurrency"] for r in rows] == ["1", "2"], rows
for r in rows:
    assert r["failed"] == "0" and r["requests"] == "3" and r["machine"] and r["model"] == "galley-tiny", r
    assert re.fullmatch("[0-9a-f]{10}(-dirty)?|unknown", r["commit"]), r
    assert 0 < float(r["ttft_s"]) <= float(r["ttft_95_s"]) and float(r["tpot_s"]) > 0, r
    assert float(r["output_per_s"]) > 0 and float(r["decode_per_s"]) > 0, r
svg = xml.dom.minidom.parse("b.svg").documentElement
assert svg.tagName == "svg" and len(svg.getElementsByTagName("circle")) == 2
PY
# shellcheck disable=SC2086
expect 0 bench --model "$model" $few --concurrency 2 --image 56x56 --json --kv q8
[ "$(json out 'd["levels"][0]["failed"], d["kv"], d["width"]')" = "(0, 'q8', 56)" ] || fail "$(cat out)"
for value in 0 a 1, ,1 1,,2 -1 2000; do
    expect 2 bench --concurrency "$value"
    says concurrency
done
for value in 56 x 56x 0x5 56x56x3; do expect 2 bench --image "$value"; done
expect 2 bench --linear f16 --model "$model" --requests 1
says f16
expect 2 bench --kv q9 --model "$model" --requests 1
says q9
expect 2 bench "$model"
expect 3 bench --model missing.gguf
says missing.gguf
expect 1 bench --model "$model" --concurrency 1 --requests 1 --prompt 4 --output 1 --csv no/where.csv -q
says no/where.csv

# shellcheck disable=SC2086
expect 0 bench --model "$model" $few --concurrency 1 --json --linear exact
expect 0 inspect "$model" --plan --ctx 512 --seqs 4 --kv q8
prints "4 sequences of 512 tokens planned"
prints "GB/s read"
expect 0 inspect "$model" --plan --ctx 512 --seqs 4 --json
cp out four.json
expect 0 inspect "$model" --plan --ctx 512 --seqs 8 --json
[ "$("$python" -c 'import json
a, b = json.load(open("four.json")), json.load(open("out"))
parts = ("language_bytes", "vision_bytes", "vision_job_bytes", "step_bytes", "kv_bytes")
for p in (a, b):
    assert sum(p[k] for k in parts) <= p["total_bytes"] <= p["memory_bytes"], p
    assert p["read_bytes_per_s"] > 0 and p["int8_per_s"] > 0, p
print(b["kv_bytes"] / a["kv_bytes"], a["context"], b["fit_context"] > 0)')" = "2.0 512 True" ] || fail "plans"
expect 2 inspect "$model" --ctx 512
says "go with --plan"
expect 2 inspect "$model" --linear exact
says "go with --plan"
expect 0 inspect "$model" --plan --ctx 100000 --seqs 2
prints "or 2 of 2048 tokens (the model's limit)"
prints "100000 tokens were asked for, the model's limit is 2048"
prints "products    in f32"
expect 0 inspect "$model" --plan --ctx 512 --seqs 2 --memory 110
prints "tokens (as memory allows)"
# Exact rows are not quantised: no room for their codes, and f32 is the roof.
expect 0 quantize "$model" tiny.gguf --type q8_0
expect 0 inspect tiny.gguf --plan --seqs 2 --rows 4096 --json
cp out codes.json
expect 0 inspect tiny.gguf --plan --seqs 2 --rows 4096 --json --linear exact
[ "$("$python" -c 'import json
a, b = json.load(open("codes.json")), json.load(open("out"))
less = [a[k] > b[k] for k in ("step_bytes", "total_bytes")]
print(a["exact_linear"], b["exact_linear"], *less)')" = "False True True True" ] || fail "exact rows: $(cat out)"
expect 0 inspect tiny.gguf --plan
prints "products    rows quantised to int8"
expect 0 inspect tiny.gguf --plan --linear exact
prints "products    rows exact, in f32"
expect 6 inspect "$model" --plan --memory 60
says "GB in all, there are 0.06"
expect 6 convert "$samples/letter.png" --memory 60
says "GB in all, there are 0.06"
