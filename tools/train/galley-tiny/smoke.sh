#!/bin/bash
# Every step of the training once, small: corpus, tokenizer (taken from models/galley-tiny unless SMOKE_TOK=1), rendering, some
# steps of both stages, export, check.  Two to five minutes on two cores; the result reads nothing.  smoke.sh [folder]
set -euo pipefail
cd "$(dirname "$0")"
TOP=$(cd ../../.. && pwd)
export GALLEY_TRAIN=$(realpath -m "${1:-$(mktemp -d)}") GALLEY_SHARDS
GALLEY_SHARDS=$GALLEY_TRAIN/shards
. ./env.sh
mkdir -p "$GALLEY_TRAIN"/work "$GALLEY_TRAIN"/out/model "$GALLEY_SHARDS"
python3 corpus.py
if [ "${SMOKE_TOK:-0}" = 1 ]; then
    python3 tok.py
else
    cp "$TOP"/models/galley-tiny/{vocab.json,merges.txt,tokenizer.json,tokenizer_config.json} "$GALLEY_TRAIN"/out/model/
fi
python3 gen.py worker 1 0 4 > "$GALLEY_TRAIN"/work/gen.log 2>&1 &
worker=$!
trap 'kill $worker 2>/dev/null || true' EXIT
for _ in $(seq 180); do
    [ "$(find "$GALLEY_SHARDS" -name '*.pkl' | wc -l)" -ge 4 ] && break
    sleep 1
done
kill $worker
! grep -q 'gen error' "$GALLEY_TRAIN"/work/gen.log || { head -3 "$GALLEY_TRAIN"/work/gen.log; exit 1; }
# --peek leaves the shards where they are, so that both stages can use them.
python3 train.py --stage a --secs 30 --peek --live 4 --warm 5 --save "$GALLEY_TRAIN"/work/a.pt
python3 train.py --stage b --secs 45 --peek --live 4 --warm 5 --resume "$GALLEY_TRAIN"/work/a.pt --optreset --save "$GALLEY_TRAIN"/work/b.pt
python3 export.py "$GALLEY_TRAIN"/work/b.pt "$GALLEY_TRAIN"/out/model ema
python3 check.py "$GALLEY_TRAIN"/out/model
echo "smoke: ok, files in $GALLEY_TRAIN"
