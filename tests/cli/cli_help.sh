# Help and version: on stdout, exit 0, and nothing missing from the help or the man page.
"$galley" --version
"$galley" version
for word in help --help -h; do
    expect 0 $word
    cp out "overview$word"
    silent
done
same overviewhelp overview--help
same overviewhelp overview-h
head -n 3 overviewhelp
for command in convert inspect doctor quantize bench; do
    expect 0 help $command
    cp out by-help
    head -n 1 out
    expect 0 $command --help
    same out by-help
    expect 0 $command x -h --nonsense
    same out by-help
    awk 'length > 110 { exit 1 }' out || fail "the help of $command has lines over 110 columns"
done

# Without a command the overview is an error message.
expect 2
same err overviewhelp
[ ! -s out ] || fail "usage errors belong on stderr"

# Every option of the parser's table is in the help of a command and in the man page.
{ "$galley" help convert && "$galley" help inspect && "$galley" help quantize && "$galley" help bench; } >all-help
man=$root/src/cli/galley.1
for option in $(sed -n 's/^    { "\([a-z-]*\)", [a-z]*_argument,.*/\1/p' "$root/src/cli/options.c" \
    "$root/src/cli/cli_quantize.c" "$root/src/cli/bench.c"); do
    grep -qe "--$option\b" all-help || fail "no help for --$option"
    grep -qF -- "-${option//-/\\-}" "$man" || grep -qF -- "-$option" "$man" || fail "--$option is not in galley.1"
done
for word in $(sed -n 's/^    X([A-Z_]*, "\([a-z_]*\)").*/\1/p' "$root/src/galley_types.h"); do
    grep -qF -- "$word" "$man" || fail "page status $word is not in galley.1"
done
for code in $(sed -n 's/^    EXIT_[A-Z]* = \([0-9]*\),*/\1/p' "$root/src/cli/cli.h"); do
    grep -qE "^\.It (Li )?$code\$" "$man" || fail "exit status $code is not in galley.1"
done
command -v mandoc >/dev/null || fail "mandoc is missing (tools/packages.txt)"
mandoc -Tlint -Wwarning "$man" >&2 || fail "mandoc finds fault with galley.1"
