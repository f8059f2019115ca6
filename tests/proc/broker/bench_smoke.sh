#!/bin/bash
# Each program of tests/bench runs, as small as it can, and prints the figures that it is for. No time is judged.
. "$(dirname "$0")/../lib.sh"

[ -w /dev/shm ] || { say "skipped: there is no /dev/shm to write to" && exit 77; }
export MUSTERD=$musterd MUSTER=$muster TMPDIR=$dir BENCH_IDLE_MS=300
unset BENCH_SHARED
programs=$TESTS_DIR/bench
known=()

# prints CODES FIGURES NAME ARGS... - it ends with one of these codes, says nothing on stderr but warnings, and prints JSON
# documents in which each of these figures is a number that is not negative.
prints() {
    local codes=$1 figures=$2 name=$3 code=0

    shift 3
    known+=("bench_$name")
    timeout $hangs_after "$programs/bench_$name" "$@" >"$dir/out" 2>"$dir/err" || code=$?
    [[ " $codes " == *" $code "* ]] || fail "bench_$name $*: exit code $code: $(cat "$dir/err" "$dir/out")"
    ! grep -v '^muster: warning: ' "$dir/err" || fail "bench_$name $*: $(cat "$dir/err")"
    python3 - "$dir/out" $figures <<'END' || fail "bench_$name $*: $(cat "$dir/out")"
import json, sys

text, at, documents = open(sys.argv[1]).read().strip(), 0, []
while at < len(text):
    document, end = json.JSONDecoder().raw_decode(text, at)
    documents.append(document)
    at = end + len(text[end:]) - len(text[end:].lstrip())
seen = {}
def look(part):
    for name, value in part.items() if isinstance(part, dict) else enumerate(part) if isinstance(part, list) else ():
        if isinstance(value, (int, float)):
            seen.setdefault(name, []).append(value)
        look(value)
look(documents)
lacking = [name for name in sys.argv[2:] if not seen.get(name) or min(seen[name]) < 0]
sys.exit(f"no such figure: {' '.join(lacking)}" if lacking else 0)
END
}

prints 0 'fetch_add_ns call_ns run_ns' gate
prints 0 'floor_ms commit_ms commits_ms memory_ms keys_ms disk_ms relayed_ms' notice 1 "$dir" 9
prints 0 'floor_ms commit_ms disk_ms relayed_ms' error 1 "$dir" 4
prints 0 'floor_cpu_ms direct_cpu_ms direct_mib relayed_cpu_ms hosts_cpu_ms hosts_mib hosts_empty_mib' idle 1 "$dir" 20
prints 0 'back_ms decided_ms floor_ms' restart 1 "$dir" 9
prints 0 'musterd_decisions_per_s musterd_events_per_s musterd_group floor_events_per_s sqlite_events_per_s floor_ratio sqlite_ratio' jobs 0.2 "$dir" 3
prints '0 1' 'mib plain_mib_s muster_mib_s first_hold_ms' save 1 # 1: it was slow
prints 0 'list_ms broker_ms manager_ms select_ms' checkpoints 100
prints 0 'tasks_per_s p50_ms' tasks 20 "$dir"

# it prints no JSON
known+=(bench_rows)
"$programs/bench_rows" 100 1000 >"$dir/out" 2>&1 || fail "bench_rows: $(cat "$dir/out")"
says "$(cat "$dir/out")" '^ *100 rows: .*import. [0-9]* ms'
"$programs/bench_rows" old 2000 20 200 >"$dir/out" 2>&1 || fail "bench_rows old: $(cat "$dir/out")"
says "$(cat "$dir/out")" '^2000 events, 20 checkpoints, 200 rounds: ' '^start .* ms, aim 1000 ms' '^why .* ms, aim +100 ms'

known+=(bench_batches) # with a PostgreSQL of its own
if compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null; then
    bash "$SOURCE_DIR/tests/bench/bench_shared.sh" /tmp 1 4 >"$dir/out" 2>"$dir/err" || fail "bench_shared.sh: $(cat "$dir/err")"
    says "$(cat "$dir/out")" '"shared_ms": [0-9.]*'
fi

same "programs of tests/bench that were run" "$(printf '%s\n' "${known[@]}" | sort -u)" \
    "$(cd "$SOURCE_DIR/tests/bench" && ls bench_*.c | sed 's/\.c$//' | sort)"
finish "${#known[@]} benchmarks run"
