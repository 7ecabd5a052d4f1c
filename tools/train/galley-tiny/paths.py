"""Where training keeps its files: $GALLEY_TRAIN (default build/train), with out/ (results) and work/ (corpus, logs, checkpoints);
rendered samples go to $GALLEY_SHARDS (memory, default /dev/shm/galley-tiny-shards)."""
import os
ROOT = os.path.abspath(os.environ.get('GALLEY_TRAIN', 'build/train'))
SHARDS = os.path.abspath(os.environ.get('GALLEY_SHARDS', '/dev/shm/galley-tiny-shards'))
os.makedirs(ROOT + '/work', exist_ok=True); os.makedirs(ROOT + '/out', exist_ok=True)
