#!/bin/bash
# promises.sh - the table of faults in tests/PROMISES.md claims no more than the tests insist on: their recorded minima, read from the sources.
set -euo pipefail
cd "${SOURCE_DIR:-$(dirname "$0")/../..}"
failed=0 rows=0
table=$(sed -n '/^| promise | faults injected |/,/^$/p' tests/PROMISES.md | tail -n +3)

# claimed COMMAND - the number in the last cell of the row whose command ends so.
claimed() {
    grep -F -- "$1\`" <<<"$table" | awk -F'|' '{ print $(NF - 1) }' | tr -d ',' | grep -Eo '[0-9]+' | head -n 1
}

# insists_by COMMAND NUMBER - it fails below that number. insists TEST NUMBER - the same of one test.
insists_by() {
    local claim

    claim=$(claimed "$1") || { echo "tests/PROMISES.md has no row with $1" && failed=1 && return; }
    rows=$((rows + 1))
    [ "$claim" -gt 0 ] && [ "$claim" -le "$2" ] || { echo "tests/PROMISES.md claims $claim for $1, which insists on $2" && failed=1; }
}
insists() { insists_by "-R $1" "$2"; }

number() { grep -Eo -e "$2" "$1" | grep -Eo '[0-9]+' | head -n 1; } # FILE PATTERN

# points FILE [PATTERN] - the sum of the minima of its sweeps, macros expanded.
points() {
    "${CC:-cc}" -E -P -I. "tests/faults/$1" | grep -Eo "${2:-points_min = [0-9]+}" | grep -Eo '[0-9]+$' | awk '{ sum += $1 } END { print sum + 0 }'
}

fixed=tests/sim/plain_fixed_set.c
insists sim.fixed_set $(($(number $fixed 'FIXED_SEEDS [0-9]+') + $(number $fixed 'SQLITE_SEEDS [0-9]+')))
insists sim.fixed_tasks "$(number tests/sim/plain_fixed_tasks.c 'define SEEDS [0-9]+')"
for control in sim_keep sim_controls sim_stale sim_members sim_wakeup sim_margin sim_why; do
    insists sim.$control "$(number tests/sim/test_$control.c 'define BUGS_MIN [0-9]+')"
done
for control in bounds claims power_cuts relays shared suspects; do
    insists sim.$control "$(number tests/sim/plain_$control.c 'define BUGS_MIN [0-9]+')"
done
insists model.round "$(number tests/model/round.sh '^verdict [0-9]+')"
insists model.lease "$(number tests/model/lease.sh '^verdict [0-9]+')"
insists proc.slow_crash "$(grep -ho '^kills_min=[0-9]*' tests/proc/recovery/slow_crash_*.sh | awk -F= '{ sum += $2 } END { print sum + 0 }')"
insists proc.crash_stories "$(number tests/proc/recovery/crash_stories.sh '^points_min=[0-9]+')"
insists proc.slow_node_faults_more "$(number tests/proc/recovery/slow_node_faults_more.sh '^faults_min=[0-9]+')"
insists proc.node_faults $((3 * $(sed -n "s/^phases='\(.*\)'/\1/p" tests/proc/lib_node_faults.sh | wc -w)))
insists proc.slow_rounds_under_kills $((2 * $(number tests/proc/recovery/slow_rounds_under_kills.sh '^rounds_under_kills [0-9]+')))
jobs() { number "$(find tests/proc -name "$1.sh")" '^jobs_min=[0-9]+'; }
insists proc.network "$(jobs network)"
insists "'proc.(preempt_half_the_events\|preempt_without_events\|stalled_subscriber)'" $((2 * $(jobs lib_lossy) + $(jobs stalled_subscriber)))
for sweep in slow_vfs_calls slow_vfs_plots slow_sqlite_allocations slow_sqlite_plots; do
    insists faults.$sweep "$(points test_$sweep.c)"
done
insists faults.slow_migrations $(($(points test_slow_migrations.c) + $(points test_slow_migrations_full.c) + $(points test_slow_migrations_memory.c)))
own() { sed -n "/ $1\[\]/,/};/p" tests/faults/own_allocations.c | grep -Eo '[0-9]+}' | grep -Eo '[0-9]+' | awk '{ sum += $1 } END { print sum + 0 }'; }
insists faults.own_allocations "$(own few)"
insists faults.slow_own_allocations "$(own all)"
insists faults.node_files "$(sed -n '/ sweeps\[\]/,/^};/s/.*, \([0-9]*\)},$/\1/p' tests/faults/test_node_files.c | awk '{ sum += $1 } END { print sum + 0 }')"
insists faults.slow_node_allocations "$(number tests/faults/test_slow_node_allocations.c 'POINTS_MIN [0-9]+')"
insists_by './tools/dev fuzz' "$(number tools/dev 'seconds=[0-9]+')"
insists_by './tools/dev test --nightly' "$(number tests/proc/broker/slow_valgrind.sh '^clean_min=[0-9]+')"
[ $rows = "$(wc -l <<<"$table")" ] || { echo "of $(wc -l <<<"$table") rows of tests/PROMISES.md's table $rows were compared" && failed=1; }
[ $failed = 0 ] && echo "$rows figures of tests/PROMISES.md are no more than the tests insist on"
exit $failed
