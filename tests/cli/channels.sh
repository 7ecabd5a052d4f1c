# stdout is data, stderr is status; the progress line is for terminals only.
doc=$samples/invoice.pdf
expect 0 convert "$doc"
cp out truth.md
silent
expect 0 convert "$doc" --quiet
silent
same out truth.md
expect 0 convert "$doc" --verbose
same out truth.md "--verbose"
says "page 1: ok"
expect 0 convert "$doc" --quiet -o x.md
silent
[ ! -s out ] || fail "-o FILE and stdout"

# --quiet is silent about warnings, not about failures.
expect 0 convert "$doc" --max-new-tokens 1
says truncated
expect 0 convert "$doc" --max-new-tokens 1 --quiet
silent
expect 4 convert --quiet missing.pdf
says missing.pdf

# A name cannot write control sequences to the terminal.
cp "$root/src/galley.h" $'red\e[31m.pdf'
expect 4 convert $'red\e[31m.pdf'
! grep -q $'\e' err || fail "an escape from a file name reached stderr"

command -v script >/dev/null || fail "script is missing (Debian: bsdutils)"
# on_terminal ARG...: the program with stderr on a terminal, what it drew in ./drawn
on_terminal() {
    TERM=xterm script -qec "$(printf '%q ' "$galley" "$@") >out" drawn >/dev/null </dev/null || fail "on a terminal: $*"
}
on_terminal convert "$samples/report.pdf"
grep -q 'page [0-9]/3, region [0-9]*/[0-9]*, [0-9]* tok/s, accept [0-9.]*' drawn ||
    fail "no progress: $(head -c 300 drawn)"
! grep -qE 'tok/s' out || fail "progress in the data"
tail -c 100 drawn | grep -q $'\r\e\\[K' || fail "the progress line is not wiped at the end"
on_terminal convert "$samples/report.pdf" --quiet
! grep -q 'tok/s' drawn || fail "--quiet draws progress"
