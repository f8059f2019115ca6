# `muster run`: signals go to the rank processes, once, and decide the exit code.
. "${BASH_SOURCE%/*}/lib_run.sh"

cat >"$dir/rank" <<'RANK'
# Notes every signal in $dir/<signal>.<rank>; leaves with $LEAVE at SIGTERM unless that is empty.
for s in TERM INT HUP USR1 USR2; do
    trap "echo $s >>'$dir/$s.$MUSTER_RANK'; [ $s = TERM ] && [ -n '${LEAVE-}' ] && exit ${LEAVE:-0}" $s
done
bash -c 'trap "echo x >>\"$dir/child\"" TERM HUP USR1 USR2; echo $$ >"$dir/up.$MUSTER_RANK"; while :; do sleep 0.05; done' &
while :; do wait; done
RANK
up() { [ -s "$dir/up.0" ] && [ -s "$dir/up.1" ]; }
fresh() { rm -f "$dir"/up.* "$dir"/*.0 "$dir"/*.1 "$dir/child"; }

# Ranks that do not leave are named after 5 s, while the rest of this test goes on.
cat >"$dir/stays" <<'STAYS'
trap ': >"$dir/stays.$MUSTER_RANK"' TERM
: >"$dir/here.$MUSTER_RANK"
until [ -e "$dir/enough" ]; do sleep 0.1; done
exit 42
STAYS
env --default-signal=TERM "$MUSTER" run -n 2 --job stays -- bash "$dir/stays" >/dev/null 2>"$dir/stays.err" &
stays=$!
started="$started $stays"
both_here() { [ -e "$dir/here.0" ] && [ -e "$dir/here.1" ]; }
await "the ranks that stay" both_here
kill -TERM $stays

# Each signal, once, to both ranks; a second SIGTERM is not passed on. USR1 behind it proves that
# nothing more is on its way.
launch -n 2 -- bash "$dir/rank"
await "both ranks" up
for s in USR2 HUP TERM TERM; do
    kill -$s $pid
    await "$s at rank 0" test -s "$dir/$s.0"
    await "$s at rank 1" test -s "$dir/$s.1"
done
kill -USR1 $pid
await "USR1 at rank 0" test -s "$dir/USR1.0"
await "USR1 at rank 1" test -s "$dir/USR1.1"
for s in USR1 USR2 HUP TERM; do
    for r in 0 1; do
        [ "$(wc -l <"$dir/$s.$r")" = 1 ] || fail "rank $r got $s $(wc -l <"$dir/$s.$r") times"
    done
done
[ ! -e "$dir/child" ] || fail "a child of a rank got the signal"
expect err "signal 15 (Terminated) forwarded to 2 ranks"

# The first SIGINT is passed on, one long after it kills.
kill -INT $pid
await "INT at rank 0" test -s "$dir/INT.0"
end=$((SECONDS + 20))
while kill -INT $pid 2>/dev/null && ! is_gone $pid; do
    [ $SECONDS -lt $end ] || fail "a second SIGINT does not kill"
    read -rt 0.1 <> <(:) || true
done
ended
expect_code 137 "killed by the second SIGINT"
[ "$(wc -l <"$dir/INT.0")" = 1 ] || fail "SIGINT was forwarded twice"

# Told to end: the ranks' restart code is passed on, nothing is restarted.
for leave in 42 0 5 93; do
    fresh
    LEAVE=$leave launch -n 2 --grace-ms 200 -- bash "$dir/rank"
    await "both ranks" up
    kill -TERM $pid
    ended
    expect_code $leave "told to end, the ranks leave with $leave"
    [ $leave = 5 ] || [ ! -e "$dir/child" ] || fail "a child of a rank that settled its affairs got the signal"
    ! grep -q "launch 2" "$dir/err" || fail "restarted after SIGTERM"
done

# Ctrl-C ends ranks that do not know the signal: no restart, no restart code. (A terminal's: proc/run_ctrl_c.sh.)
launch -n 2 -- sleep 60
await "the start" grep -q "launch 1" "$dir/err"
kill -INT $pid
ended
expect_code 130 "interrupted"
! grep -q "launch 2" "$dir/err" || fail "restarted after SIGINT"

# SIGTERM before a rank has its handler is a preemption as well.
launch -n 2 -- sleep 60
await "the start" grep -q "launch 1" "$dir/err"
kill -TERM $pid
ended
expect_code 42 "ranks without a handler"

# A script that does not exec its program: the shell dies of the signal, the program gets it next and may take its time.
cat >"$dir/program" <<'PROGRAM'
for s in TERM USR1; do
    trap "echo $s >>'$dir/$s.0'; until [ -e '$dir/may' ]; do sleep 0.02; done; touch '$dir/saved'; exit 42" $s
done
touch "$dir/program.up"
while :; do sleep 0.05; done
PROGRAM
printf '#!/bin/sh\nbash "$1"\nexit $?\n' >"$dir/script"
for s in TERM USR1; do
    fresh
    rm -f "$dir"/program.up "$dir"/may "$dir"/saved
    launch -- sh "$dir/script" "$dir/program"
    await "the program" test -e "$dir/program.up"
    kill -$s $pid
    await "$s at the program of the script" test -s "$dir/$s.0"
    touch "$dir/may"
    ended
    expect_code 42 "a script's program that leaves with 42 after SIG$s"
    [ -e "$dir/saved" ] || fail "a script's program was killed before it had saved"
    [ "$(wc -l <"$dir/$s.0")" = 1 ] || fail "a script's program got SIG$s twice"
    expect err "rank 0's process ended and left 1 of its own running"
done

# It has as long as the script would have had.
fresh
rm -f "$dir"/program.up "$dir"/may
launch --stop-ms 300 -- sh "$dir/script" "$dir/program"
await "the program" test -e "$dir/program.up"
kill -TERM $pid
ended
expect_code 137 "a script's program that does not leave"
expect err "sending SIGKILL to 1 rank"

# One rank that is preempted alone: all are restarted.
fresh
LEAVE=42 launch -n 2 --leave-ms 100 -- bash "$dir/rank"
await "both ranks" up
child=$(cat "$dir/up.1")
kill -TERM "$(sed 's/.*) . \([0-9]*\) .*/\1/' "/proc/$child/stat")"
await "the restart" grep -q "launch 2: restarting 2 ranks (preempted" "$dir/err"
kill -TERM $pid
ended
expect_code 42 "preempted twice"
expect err "rank 1 left with the restart code, these ranks still run: 0. One that starts or is in a step leaves when that ends"

# SIGTERM while it waits to restart after a failure.
launch --backoff-ms 30000 -- false
await "the backoff" grep -q "launch 2 begins in" "$dir/err"
kill -TERM $pid
ended
expect_code 42 "told to end during the backoff"

# nohup: an ignored SIGHUP stays ignored.
(trap '' HUP; exec "$MUSTER" run -- bash -c 'echo up; read -r _ <"$dir/go"' >"$dir/out" 2>"$dir/err") &
pid=$!
started="$started $pid"
mkfifo "$dir/go"
await "the rank" grep -q up "$dir/out"
kill -HUP $pid
echo >"$dir/go"
ended
expect_code 0 "SIGHUP under nohup"

await "who still runs" grep -q "5 s after SIGTERM these ranks still run: 0 1\." "$dir/stays.err"
: >"$dir/enough"
wait "$stays"
code=$?
expect_code 42 "ranks that left late"
[ "$(grep -c "still run:" "$dir/stays.err")" = 1 ] || fail "said more than once whom it waits for"
