#!/bin/bash
# A short job from end to end under valgrind: start, an operator's save, a preemption, a crash of the broker, a restart.
# No read or write of what is not ours, nothing used before it has a value, nothing lost on the heap at any exit.
# Sanitizers and valgrind exclude each other, so it is the preset release that runs this.
. "$(dirname "$0")/../lib.sh"

[ -z "${INSTRUMENT_FLAGS:-}" ] || { say "skipped: built with sanitizers (run it with the preset release)" && exit 77; }
command -v valgrind >/dev/null || { say "skipped: there is no valgrind (package valgrind)" && exit 77; }

clean_min=20 # processes; one less is one that did not end by itself, or was not looked at
patience=200 # everything takes some thirty times as long
listen=$ipc
error_code=99
under=(valgrind --error-exitcode=$error_code --leak-check=full --show-leak-kinds=definite --errors-for-leak-kinds=definite
    --child-silent-after-fork=yes --fair-sched=try --num-callers=30
    --log-file="$dir/valgrind-%p.log")
rank_through=("${under[@]}")

ask() { MUSTER_TEST_NOW=1900000000000 "${under[@]}" "$muster" "$@" --job "$job"; }
ended=0 # processes that ended by themselves, and had to have freed what they took
count_ended() { ended=$((ended + $1)); }

for job in replicated sharded; do
    options=(--connect-ms 100000 --step-ms 20 --say-every 5 --barrier 1 --sharded 0)
    [ "$job" = replicated ] || options=(--connect-ms 100000 --step-ms 20 --say-every 5 --barrier 1 --sharded 1)
    broker_start "${under[@]}"
    ranks_start 3 --steps 100000
    await "the ranks to step" rank_said 2 '^at step'
    ask save --wait --broker "$broker" --timeout 100 >/dev/null || fail "muster save: exit code $?"
    first=$(committed)
    [ "$job" = replicated ] || { broker_kill && broker_start "${under[@]}"; }
    kill -TERM "${pids[1]}"
    all_preempted
    committed_whole "$saved"
    ranks_start 3 --steps $((saved + 20))
    all_finished $((saved + 20))
    same_why
    same "checkpoints" "$(committed)" "$first $saved"
    broker_stop
    count_ended $((3 + 3 + 3 + 1)) # two launches; save, why, why; the broker
done
for report in "$dir"/valgrind-*.log; do
    grep -q 'ERROR SUMMARY: 0 errors' "$report" && continue
    [ "$(grep -c . "$report")" -gt 6 ] || continue # killed before it could say anything
    cat "$report"
    fail "valgrind found something"
done
clean=$(grep -l 'ERROR SUMMARY: 0 errors' "$dir"/valgrind-*.log | wc -l)
holds "processes that valgrind found clean" "$clean" -ge "$ended"
holds "processes that valgrind found clean" "$clean" -ge $clean_min
finish "$clean processes of two jobs (start, save, preemption, broker crash, restart, why) under valgrind: no error, no leak"
