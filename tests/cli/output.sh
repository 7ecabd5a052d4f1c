# Where results go: one file, a folder, beside the inputs; nothing is overwritten, nothing half-made.
cp "$samples/invoice.pdf" a.pdf
run convert a.pdf
cp out truth.md

expect 0 convert a.pdf -o -
same out truth.md
"$galley" convert - <a.pdf >out 2>err || fail "standard input: $(cat err)"
same out truth.md
"$galley" convert - -o one.md <a.pdf 2>err || fail "standard input into a file"
same one.md truth.md
"$galley" convert - -o folder/ <a.pdf 2>err || fail "standard input into a folder"
same folder/stdin.md truth.md
cat a.pdf | "$galley" convert - >out 2>err || fail "a pipe: $(cat err)"
same out truth.md

expect 0 convert a.pdf -o one.md
[ ! -s out ] || fail "-o FILE wrote to stdout too"
same one.md truth.md
expect 0 convert a.pdf -o new/deep/
same new/deep/a.md truth.md
mkdir there
expect 0 convert a.pdf -o there
same there/a.md truth.md
expect 0 convert a.pdf -o there/ --format json
exists there/a.json
expect 0 convert a.pdf -o there/ --format html
exists there/a.html
expect 0 convert a.pdf -o there/ --format text
exists there/a.txt

# Several inputs: beside each, equal stems apart, the same file twice as well.
mkdir x y
cp a.pdf x/n.pdf
cp a.pdf y/n.pdf
expect 0 convert x/n.pdf y/n.pdf
same x/n.md truth.md
same y/n.md truth.md
[ ! -s out ] || fail "several inputs wrote to stdout"
expect 0 convert x/n.pdf y/n.pdf x/n.pdf -o all/
(cd all && ls)
same all/n-3.md truth.md
cp a.pdf x/n-2.pdf
expect 0 convert x/n.pdf x/n-2.pdf y/n.pdf -o more/
(cd more && ls)

# An input whose name is what the result would be called.
mkdir z
cp a.pdf z/p.md
expect 0 convert z/p.md -o z/
same z/p.md a.pdf "the input was overwritten"
same z/p-2.md truth.md
ln z/p.md z/q.pdf
ln -s p.md z/link.md
expect 0 convert z/q.pdf -o z/
same z/q.md truth.md
expect 2 convert z/q.pdf -o z/link.md
same z/p.md a.pdf "the input was overwritten through a link"
expect 2 convert a.pdf --stats a.pdf -o one.md
same a.pdf "$samples/invoice.pdf" "--stats overwrote the input"
expect 2 convert a.pdf --stats one.md -o one.md

# What cannot be written is said, with exit 1, and leaves nothing.
expect 1 convert a.pdf -o nowhere/b.md
says nowhere/b.md
expect 1 convert a.pdf -o a.pdf/
says a.pdf
expect 1 convert a.pdf -o c.md --stats nowhere/s.json
says nowhere/s.json
same c.md truth.md
expect 1 convert a.pdf --figures a.pdf
says a.pdf
expect 1 convert a.pdf -o /dev/full
says /dev/full
expect 0 convert a.pdf -o /dev/null
if [ "$(id -u)" -ne 0 ]; then
    mkdir -m 500 locked
    expect 1 convert a.pdf -o locked/b.md
fi

# An input that cannot be read leaves no file; the others are converted all the same.
echo no document >bad.pdf
expect 4 convert bad.pdf -o bad.md
absent bad.md
expect 7 convert bad.pdf a.pdf missing.pdf -o rest/
(cd rest && ls)
says bad.pdf
says missing.pdf
leftovers=$(find . -name '*.??????')
[ -z "$leftovers" ] || fail "left behind: $leftovers"
