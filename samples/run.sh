#!/bin/bash
# run.sh - builds galley if need be and converts the documents beside this script into build/out/.
#
#     samples/run.sh [OPTION...]      options go to every `galley convert`, e.g. --draft none
set -euo pipefail
cd "$(dirname "$0")/.."

tools/setup.sh build
[ -f build/CMakeCache.txt ] || cmake -S . -B build -G Ninja -DCMAKE_BUILD_TYPE=Release >/dev/null
cmake --build build --target galley galley-pdf -- --quiet

galley=build/bin/galley
out=build/out
mkdir -p "$out"
failed=0
rows=
for doc in samples/*.pdf samples/*.png samples/*.jpg; do
    name=$(basename "$doc")
    stem=${name%.*}
    start=$EPOCHREALTIME
    rc=0
    "$galley" convert "$doc" -o "$out/$stem.md" --figures "$out" --stats "$out/$stem.json" "$@" || rc=$?
    end=$EPOCHREALTIME
    [ "$rc" -eq 0 ] || failed=$((failed + 1))
    ms=$(((${end/[.,]/} - ${start/[.,]/}) / 1000))
    rows+=$(printf '%-18s %4d.%03d s  exit %d  %s' "$name" $((ms / 1000)) $((ms % 1000)) "$rc" "$out/$stem.md")$'\n'
done

echo "---- samples/report.pdf, first page ----"
"$galley" convert samples/report.pdf --pages 1 --quiet -o - "$@" || true
echo
echo "---- times ----"
printf '%s' "$rows"
if [ "$failed" -gt 0 ]; then
    echo "$failed documents failed" >&2
    exit 1
fi
