# An installation works by itself: program, model, helper, library, header, man page.
cmake --install "$build" --prefix "$PWD/prefix" >/dev/null || fail "cmake --install"
library=$(dirname "$(find prefix -name libgalley.so)")
for file in bin/galley libexec/galley/galley-pdf share/man/man1/galley.1 share/galley/galley-tiny/model.safetensors \
    include/galley/galley.h; do
    exists prefix/$file
done

galley=$PWD/prefix/bin/galley
mv prefix moved && mkdir prefix && mv moved prefix/there # nothing may remember where it was installed
galley=$PWD/prefix/there/bin/galley
library=${library/prefix/prefix/there}
cp "$samples/invoice.pdf" a.pdf
expect 0 convert a.pdf
prints Invoice
cp out truth.md
command -v strace >/dev/null || fail "strace is missing (tools/packages.txt)"
strace -f -o trace -e trace=openat,execve "$galley" convert a.pdf >/dev/null 2>&1
! grep -v ENOENT trace | grep -F "$root/" >&2 || fail "the installed program uses the source tree"

# The samples and both languages with nothing but the installed header and library.
for name in to_markdown regions batch talk complete; do
    cc -Wall -Wextra -Wpedantic -Werror -o $name "$root/samples/$name.c" -I prefix/there/include \
        -L "$library" -lgalley ||
        fail "samples/$name.c"
done
cat >both.c <<'END'
#include <galley/galley.h>
int main(void)
{
    struct galley_engine *e;
    struct galley_engine_config cfg = { 0 };
    struct galley_err err;
    cfg.model_path = "nowhere";
    if (galley_engine_open(&e, &cfg, &err) != GALLEY_EMODEL) { return 1; }
    galley_engine_close(e);
    return galley_version()[0] == '0' ? 0 : 1;
}
END
cp both.c both.cc
export LD_LIBRARY_PATH=$library${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} PKG_CONFIG_PATH=$library/pkgconfig
flags="-Wall -Wextra -Wpedantic -Werror $(pkg-config --cflags --libs galley)" || fail "galley.pc"
cc -std=c99 -o both both.c $flags && ./both || fail "galley.h in C99"
c++ -std=c++11 -Wno-missing-field-initializers -o both both.cc $flags && ./both || fail "galley.h in C++"

# The library finds galley-pdf by itself.
model=prefix/there/share/galley/galley-tiny
./to_markdown $model a.pdf >out 2>err || fail "to_markdown: $(cat err)"
same out truth.md "samples/to_markdown.c"
grep -q '^page 1: ok' err || fail "to_markdown says $(cat err)"
./regions a.pdf >out 2>err || fail "regions: $(cat err)"
grep -q '^ *[0-9]* table  .*text [01]' out || fail "regions prints $(head -c 300 out)"
mkdir in results
cp a.pdf "$samples/letter.png" in
echo broken >in/broken.png
code=0
./batch $model in results 2>err || code=$?
[ $code -eq 1 ] || fail "batch with a broken file: exit $code"
grep -q broken.png err || fail "batch does not name the broken file: $(cat err)"
ls results
for name in a.pdf letter.png; do
    "$python" "$root/tests/cli/check_json.py" document results/$name.json in/$name >&2 || fail "batch: $name"
done

# Only the public names leave the library.
nm -D --defined-only "$library/libgalley.so" | sed 's/.* //' | grep -vE '^(galley_|__bss_start|_edata|_end$)' &&
    fail "more than galley_* is exported"
true
