#!/bin/bash
# Stop-the-world generation: when fewer than $1 shards are left, pause the trainer, let two generators fill up to $2 shards, go on.
LOW=${1:-4}; HIGH=${2:-70}; S=${GALLEY_SHARDS:-/dev/shm/galley-tiny-shards}; export GALLEY_TRAIN=$(realpath -m "${GALLEY_TRAIN:-build/train}"); cd "$(dirname "$0")"
while true; do
  n=$(ls $S/*.pkl 2>/dev/null | wc -l)
  if [ $n -lt $LOW ]; then
    t0=$(date +%s); P=$(cat $GALLEY_TRAIN/work/train.pid 2>/dev/null); [ -n "$P" ] && [ -d /proc/$P ] && kill -STOP $P
    OMP_NUM_THREADS=1 python3 gen.py worker 1 0 $HIGH >> $GALLEY_TRAIN/work/gen1.log 2>&1 & A=$!
    OMP_NUM_THREADS=1 python3 gen.py worker 2 0 $HIGH >> $GALLEY_TRAIN/work/gen2.log 2>&1 & B=$!
    while [ $(ls $S/*.pkl 2>/dev/null | wc -l) -lt $HIGH ]; do sleep 1; done
    kill $A $B; rm -f $S/*.tmp; [ -n "$P" ] && [ -d /proc/$P ] && kill -CONT $P
    echo "$(date -u +%T) burst: $n -> $HIGH shards in $(( $(date +%s) - t0 )) s" >> $GALLEY_TRAIN/work/burst.log
  fi
  sleep 2
done
