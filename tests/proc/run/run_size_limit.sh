#!/bin/bash
# `muster run` under a limit of file sizes (ulimit -f): a log or a standard output that is at it ends, the ranks do not.
. "$(dirname "$0")/../lib.sh"

run() { # NAME OUT OPTIONS... - one rank under the limit, what it prints to OUT; ends with muster run's code
    local name=$1 out=$2
    shift 2
    (
        ulimit -f 8
        exec timeout "$hangs_after" "$muster" run -n 1 --job "$job" --max-failures 0 "$@" -- bash "$dir/$name.sh"
    ) >"$out" 2>"$dir/$name.err"
}

# A log that an earlier run has filled.
mkdir "$dir/logs"
head -c 8192 /dev/zero | tr '\0' x >"$dir/logs/0.log"
printf 'echo one\necho two\nread -r line <"%s"\necho "$line"\ntouch "%s"\n' "$dir/go" "$dir/log.done" >"$dir/log.sh"
mkfifo "$dir/go"
exec {go}<>"$dir/go"
run log "$dir/log.out" --output "$dir/logs" &
pid=$!
started+=("$pid")
log_lost() { grep -q 'the log of rank 0 cannot be written any more (File too large)' "$dir/log.err"; }
await "muster run's word of the log" log_lost
echo three >&"$go" # the rank lives
code=0
wait "$pid" || code=$?
same "exit code of muster run" "$code" 0
[ -e "$dir/log.done" ] || fail "the rank did not get to its end"
same "what the rank printed" "$(<"$dir/log.out")" "[0] one
[0] two
[0] three"
same "words of the log" "$(grep -c 'the log of rank' "$dir/log.err")" 1
same "bytes of the log" "$(stat -c %s "$dir/logs/0.log")" 8192

# A standard output that is a file.
printf 'for i in {1..2000}; do echo "line $i of a training log"; done\ntouch "%s"\n' "$dir/out.done" >"$dir/out.sh"
code=0
run out "$dir/out.out" || code=$?
same "exit code of muster run" "$code" 0
[ -e "$dir/out.done" ] || fail "the rank did not get to its end"
says "$(<"$dir/out.err")" 'the standard output cannot be written \(File too large\)' "job $job finished"
same "bytes of the standard output" "$(stat -c %s "$dir/out.out")" 8192

# The ranks have the signal as it is around muster run.
printf 'grep SigIgn /proc/self/status\n' >"$dir/signals.sh"
run signals "$dir/signals.out" || fail "muster run: $(<"$dir/signals.err")"
same "signals that a rank ignores" "$(<"$dir/signals.out")" "[0] $(bash "$dir/signals.sh")"
finish "a limit of file sizes ends a log of muster run, and its standard output, never a rank"
