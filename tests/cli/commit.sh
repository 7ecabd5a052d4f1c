# The commit in galley bench's files is that of the build: written anew when it changes, and only then.
write() { cmake -DSOURCE="$PWD/tree" -DOUT="$PWD/commit.c" -P "$root/src/cli/commit.cmake" || fail "commit.cmake"; }
written() { sed -n 's/^const char bench_commit\[\] = "\(.*\)";$/\1/p' commit.c; }
commit() { git -C tree -c user.name=a -c user.email=a@b commit -q "$@" || fail "git commit"; }

mkdir tree
write
[ "$(written)" = unknown ] || fail "$(written), not unknown, without a repository"
git -C . init -q
write
[ "$(written)" = unknown ] || fail "$(written), not unknown, inside another one's repository"
rm -rf .git
git -C tree init -q
write
[ "$(written)" = unknown ] || fail "$(written), not unknown, without a commit"
echo one >tree/file
git -C tree add file
commit -m one
write
first=$(written)
[ "$first" = "$(git -C tree rev-parse HEAD | cut -c 1-10)" ] || fail "$first is not the commit"
touch -d 2001-01-01 commit.c
write
[ "$(date -r commit.c +%Y)" -eq 2001 ] || fail "nothing has changed, but commit.c was written"
echo two >tree/file
write
[ "$(written)" = "$first-dirty" ] || fail "$(written) hides a change"
commit -am two
write
[ "$(written)" = "$(git -C tree rev-parse HEAD | cut -c 1-10)" ] || fail "$(written) is not the second commit"
[ "$(written)" != "$first" ] || fail "both commits are $first"
