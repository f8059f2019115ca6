# `muster run`: the ranks' output, whole lines with the rank before them.
. "${BASH_SOURCE%/*}/lib_run.sh"

# Four ranks write 2 x 5000 lines each, in blocks that end anywhere within a line, to one pipe.
cat >"$dir/talk" <<'RANK'
write() { awk -v r="$MUSTER_RANK" -v s="$1" 'BEGIN { for (i = 0; i < 5000; i++)
    printf "%s of %d number %d %s.\n", s, r, i, substr("abcdefghijklmnopqrstuvwxyz", i % 26) }'; }
write out & write err >&2 & wait
RANK
"$MUSTER" run -n 4 --output "$dir/logs" -- bash "$dir/talk" 2>&1 | cat >"$dir/out"
code=${PIPESTATUS[0]}
expect_code 0 "output to a pipe"
: >"$dir/err"
awk '/^muster run: / { next }
    !/^\[[0-3]\] (out|err) of [0-3] number [0-9]+ [a-z]+\.$/ { print "torn: " $0; bad = 1; exit }
    { if ($1 != "[" $4 "]") { print "wrong rank: " $0; bad = 1; exit }
      if ($6 != next_of[$2 $4]++) { print "out of order: " $0; bad = 1; exit } n++ }
    END { if (n != 40000) { print n " lines"; bad = 1 } exit bad }' "$dir/out" || fail "the output is damaged"
for r in 0 1 2 3; do
    [ "$(wc -l <"$dir/logs/$r.log")" = 10000 ] || fail "$r.log has $(wc -l <"$dir/logs/$r.log") lines"
    ! grep -Evq "^(out|err) of $r number [0-9]+ [a-z]+\.$" "$dir/logs/$r.log" || fail "$r.log is damaged"
done

# Logs are appended to, over restarts too.
run --output "$dir/logs" -- bash -c 'echo again; exit $((MUSTER_RESTART_COUNT == 0 ? 42 : 0))'
[ "$(wc -l <"$dir/logs/0.log")" = 10002 ] || fail "0.log was not appended to"

# Lines without an end, with other ends, empty and very long ones.
run -- bash -c 'printf "a\n\nb\r\nc\rd"; printf "no end" >&2'
[ "$(cat "$dir/out")" = $'[0] a\n[0] \n[0] b\n[0] c\n[0] d' ] || fail "line ends"
expect err "[0] no end"
run -- bash -c 'head -c 200000 /dev/zero | tr "\0" x; echo; echo after'
[ "$(sed 's/^\[0\] //' "$dir/out" | tr -d '\n')" = "$(head -c 200000 /dev/zero | tr '\0' x)after" ] ||
    fail "a long line lost bytes"
[ "$(wc -l <"$dir/out")" = 5 ] || fail "a long line is in $(wc -l <"$dir/out") pieces"

# A reader that does not read stops the ranks' output, not the signals.
mkfifo "$dir/slow"
exec 7<>"$dir/slow"
env --default-signal=INT,HUP,TERM "$MUSTER" run -- bash -c 'trap "touch \"$dir/got\"; exit 42" TERM
    echo up >"$dir/ready"; yes & wait' >"$dir/slow" 2>"$dir/err" &
pid=$!
started="$started $pid"
await "the rank" test -s "$dir/ready"
kill -TERM $pid
await "SIGTERM behind a full pipe" test -e "$dir/got"
cat <&7 >/dev/null &
reader=$!
ended
kill $reader
exec 7>&-
expect_code 42 "a slow reader"

# A reader that begins late gets every line.
env --default-signal=INT "$MUSTER" run -- bash -c 'seq 300000; touch "$dir/written"' 2>"$dir/err" |
    { read -rt 0.5 <> <(:) || true; [ ! -e "$dir/written" ] || echo "nothing was held back"; cat; } >"$dir/out"
code=${PIPESTATUS[0]}
expect_code 0 "output to a pipe"
[ "$(sed -n '$p' "$dir/out")" = "[0] 300000" ] && [ "$(wc -l <"$dir/out")" = 300000 ] ||
    fail "$(wc -l <"$dir/out") lines of 300000 arrived late"

# The box has the beginning of a long line, and a sign that it is not whole; one that just fits is whole.
run --max-failures 0 -- bash -c 'printf "%0500d\n" 0 >&2; printf "%0399d\n" 0 >&2; for i in {1..200}; do printf "€" >&2; done; exit 1'
tail=$(sed 's/^.*|   //' "$dir/err" "$dir/out" | grep -E '^(0{395}|(€)+) \.\.\.$|^0{399}$' | LC_ALL=C awk '{ print length($0) }' | sort -u | xargs)
[ "$tail" = "397 399" ] || fail "the box has lines of $tail bytes"

# A reader that goes away does not end the job.
"$MUSTER" run -- bash -c 'for i in {1..20000}; do echo $i; done; touch "$dir/done"' 2>"$dir/err" | head -n 1 >"$dir/out"
[ "${PIPESTATUS[0]}" = 0 ] && [ -e "$dir/done" ] || fail "the job died with its reader"

# A full disk behind it does not end the job either, but it is told, once.
"$MUSTER" run -- bash -c 'for i in {1..20000}; do echo $i; done' >/dev/full 2>"$dir/err"
[ $? = 0 ] || fail "the job died of a full disk"
expect err "the standard output cannot be written (No space left on device)"
[ "$(grep -c "cannot be written" "$dir/err")" = 1 ] || fail "a full disk was told more than once"

# What the ranks left word of is told: first what was not saved, and where the job resumes.
cat >"$dir/left" <<'RANK'
printf 'muster-left 1\n%s\n' "$([ "$MUSTER_RANK" = 1 ] && echo "NOT saved: the disk is full" || echo "saved at step 4")" \
    >"$MUSTER_LIFE_FILE"
touch "$0.$MUSTER_RESTART_COUNT.$MUSTER_RANK" # the first that leaves ends the other, which has not begun a step
until [ -e "$0.$MUSTER_RESTART_COUNT.$((1 - MUSTER_RANK))" ]; do sleep 0.01; done
exit $((MUSTER_RESTART_COUNT == 0 ? 42 : 0))
RANK
run -n 2 -- bash "$dir/left"
expect_code 0 "ranks that leave word"
[ "$(grep -c '^muster run: rank 1: NOT saved: the disk is full$' "$dir/err")" = 2 ] || fail "what was not saved is not told"
expect err "muster run: launch 2: restarting"

rm -f "$dir/left".*

# Of what goes as it should --log-level warning says nothing.
run -n 2 --log-level warning -- bash "$dir/left"
[ "$(grep -vc '^muster run: rank 1: NOT saved' "$dir/err")" = 0 ] || fail "more is said than warnings"
run --log-level loud -- true
expect_code 2 "a level that does not exist"
expect err '"loud"; it takes none, error, warning, info or debug'
