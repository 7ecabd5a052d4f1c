# Interruptions: what is finished is kept, and the exit status says what happened.
"$python" "$root/tests/cli/make_pdf.py" 400 long.pdf
"$python" "$root/tests/cli/make_pdf.py" 60 book.pdf

# wait_for SECONDS COMMAND...: until it succeeds
wait_for() {
    local limit=$((SECONDS + $1))
    shift
    until "$@"; do
        [ $SECONDS -lt $limit ] || fail "waited too long: $*"
        sleep 0.05
    done
}
has_pages() { [ "$(grep -c '<!-- page' "$1" 2>/dev/null)" -ge 3 ]; }

# SIGINT in the middle (SIGTERM is handled by the same code): 130, the finished pages are in the file
# and nothing is half there.
interrupt() {
    local signal=$1 file=$2
    shift 2
    "$galley" convert long.pdf --page-break "$@" 2>err >out &
    local pid=$!
    wait_for 120 has_pages "$file"
    kill -"$signal" $pid
    code=0
    wait $pid || code=$?
    [ $code -eq 130 ] || fail "exit $code, not 130 after SIG$signal: $(head -c 300 err)"
    grep -q 'stopped after [0-9]* of 400 pages' err || fail "SIG$signal: $(head -c 300 err)"
}
# Background jobs of scripts ignore SIGINT unless job control is on.
set -m
interrupt INT out
n=$(grep -c '<!-- page' out)
[ "$n" -ge 3 ] && [ "$n" -lt 400 ] || fail "$n pages were written"
[ "$(grep -c 'sentinel' out)" -eq "$n" ] || fail "$n marks, $(grep -c sentinel out) finished pages"
grep -o 'stopped after [0-9]*' err | grep -qw "$n" || fail "$n pages are there, it says $(cat err)"

"$galley" convert long.pdf --page-break -o long.md 2>err >out &
pid=$!
begun() { ls long.md.?????? >/dev/null 2>&1; }
wait_for 120 begun
sleep 2
kill -INT $pid
code=0
wait $pid || code=$?
[ $code -eq 130 ] || fail "exit $code, not 130 with -o"
n=$(grep -o 'stopped after [0-9]*' err | tr -dc 0-9)
if [ "$n" -gt 0 ]; then
    [ "$(grep -c 'sentinel' long.md)" -eq "$n" ] || fail "long.md has $(grep -c sentinel long.md) of $n pages"
fi
! begun || fail "left behind: $(ls)"

# JSON stays JSON.
"$galley" convert long.pdf --format json 2>err >out.json &
pid=$!
wait_for 120 grep -qs '"page":	2' out.json
kill -INT $pid
wait $pid
json out.json 'len(d["pages"]) == d["stats"]["pages"] >= 2'

# A reader that goes away, a stdout that is closed or full: exit 1, no death by signal.
"$galley" convert long.pdf 2>err | head -c 10 >/dev/null
code=${PIPESTATUS[0]}
[ "$code" -eq 1 ] || fail "exit $code, not 1 when the reader goes away"
code=0
"$galley" convert "$samples/invoice.pdf" >/dev/full 2>err || code=$?
[ $code -eq 1 ] || fail "exit $code, not 1 when stdout is full"
says 'standard output'
code=0
"$galley" convert "$samples/invoice.pdf" >&- 2>err || code=$?
[ $code -eq 1 ] || fail "exit $code, not 1 when stdout is closed"

# The parser is killed in the middle: one page is lost, the others are there.
"$galley" convert book.pdf --format json >out.json 2>err &
pid=$!
helper_of() { helper=$(pgrep -P $pid -x galley-pdf); }
wait_for 60 helper_of
wait_for 120 grep -qs '"page":	1,' out.json
helper_of && kill -9 "$helper"
code=0
wait $pid || code=$?
[ $code -eq 7 ] || fail "exit $code, not 7 after kill -9 of galley-pdf: $(head -c 300 err)"
json out.json '(len(d["pages"]), sum(p["status"] == "corrupt" for p in d["pages"]),
                sum("sentinel" in p["markdown"] for p in d["pages"]))'
