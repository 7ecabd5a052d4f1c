#!/bin/bash
# cli.sh - runs one case of the command line's tests, in a folder of its own.
#
#     tests/cli/cli.sh CASE.sh GALLEY [BUILD]      from the root of the source tree
#
# A case is a shell script that uses the functions below.  Beside it may lie what it must print:
# CASE.sh.stdout.exact, or CASE.sh.stdout.glob with a pattern per line.
set -uo pipefail # no -e: cases look at exit codes themselves

case_file=$PWD/$1
galley=$(realpath "$2")
build=${3:+$(realpath "$3")}
root=$PWD
samples=$root/samples
python=${PYTHON:-python3}
unset GALLEY_MODEL GALLEY_CPU
export LC_ALL=C.UTF-8

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1

# fail WORD...: ends the case
fail() {
    echo "FAILED ${case_file##*/}: $*" >&2
    exit 1
}

# run ARG...: the program without a terminal; its stdout in ./out, its stderr in ./err, its exit
# status in $code
run() {
    code=0
    "$galley" "$@" >out 2>err </dev/null || code=$?
    last="galley $*"
}

# expect CODE ARG...: run, and the exit status must be CODE
expect() {
    local want=$1
    shift
    run "$@"
    [ "$code" -eq "$want" ] || fail "exit $code, not $want: $last: $(head -c 500 err)"
}

# says WORDS, prints WORDS: the last run's stderr, stdout must hold them
says() { grep -qF -- "$1" err || fail "$last does not say \"$1\": $(head -c 500 err)"; }
prints() { grep -qF -- "$1" out || fail "$last does not print \"$1\": $(head -c 500 out)"; }
silent() { [ ! -s err ] || fail "$last is not silent: $(head -c 500 err)"; }
# same A B: equal bytes
same() { cmp -- "$1" "$2" >&2 || fail "$1 and $2 differ${3:+: $3}"; }
exists() { [ -s "$1" ] || fail "$last left no $1"; }
absent() { [ ! -e "$1" ] || fail "$1 should not be there after: $last"; }

# json FILE EXPRESSION: prints a Python expression over the document d
json() {
    "$python" -c 'import json, sys
d = json.load(open(sys.argv[1], encoding="utf-8"))
print(eval(sys.argv[2]))' "$1" "$2" || fail "$1: $2"
}

# Each line of a file against the pattern in the same line of another.
match_lines() {
    local want got n=0
    while IFS= read -r want <&3; do
        n=$((n + 1))
        IFS= read -r got <&4 || fail "line $n is missing, wanted: $want"
        # shellcheck disable=SC2053 # a pattern on purpose
        [[ $got == $want ]] || fail "line $n is \"$got\", wanted: $want"
    done 3<"$1" 4<"$2"
    [ "$n" -eq "$(wc -l <"$2")" ] || fail "$(wc -l <"$2") lines, wanted $n"
}

# shellcheck source=/dev/null
(source "$case_file") >printed || exit 1
if [ -f "$case_file.stdout.exact" ]; then
    diff -u "$case_file.stdout.exact" printed >&2 || fail "printed something else"
elif [ -f "$case_file.stdout.glob" ]; then
    match_lines "$case_file.stdout.glob" printed
fi
