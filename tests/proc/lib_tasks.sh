# lib_tasks.sh - workers of tasks and coordinators, for the scripts about them; sourced after lib.sh.
tasks=$TESTS_DIR/proc/prog_tasks
declare -A workers=() # index -> pid
export TASKS_LOG="$dir/attempts"
: >"$TASKS_LOG"

# worker_start INDEX [SLOTS [PREFETCH]]
worker_start() {
    MUSTER_JOB=$job MUSTER_BROKER=$broker MUSTER_RANK=$1 "$tasks" worker "${2:-1}" "${3:-0}" \
        </dev/null >>"$dir/worker-$1.log" 2>&1 &
    workers[$1]=$!
    started+=("$!")
}

worker_is_gone() { not is_ours "${workers[$1]}"; }

worker_kill() {
    kill_child "${workers[$1]}" "worker $1"
    unset "workers[$1]"
}

# Whoever was ended by a task begins again, as under a supervisor.
workers_again() {
    local index

    for index in "${!workers[@]}"; do
        if worker_is_gone "$index"; then
            wait "${workers[$index]}" 2>/dev/null || true
            worker_start "$index" ${worker_options[@]+"${worker_options[@]}"}
        fi
    done
}

# Every worker's newest process is the one that the broker counts on.
workers_are_there() {
    local list="${workers[*]}"

    [ "$(query "SELECT count(*) FROM task_worker WHERE state = 'live' AND pid IN (${list// /,})")" = "${#workers[@]}" ]
}

# Orderly, exit code 0: nothing leaked.
workers_stop() {
    local index code

    for index in "${!workers[@]}"; do
        kill -TERM "${workers[$index]}" 2>/dev/null || true
    done
    for index in "${!workers[@]}"; do
        code=0
        await "the end of worker $index" worker_is_gone "$index"
        wait "${workers[$index]}" || code=$?
        same "exit code of worker $index" "$code" 0
    done
    workers=()
}

# coordinate ARGUMENTS... - in the foreground.
coordinate() {
    MUSTER_JOB=$job MUSTER_BROKER=$broker "$tasks" "$@" </dev/null >>"$dir/coordinator.log" 2>&1 ||
        fail "coordinator: $*"
}

# coordinate_behind ARGUMENTS... - its pid in $coordinator.
coordinate_behind() {
    MUSTER_JOB=$job MUSTER_BROKER=$broker "$tasks" "$@" </dev/null >>"$dir/coordinator.log" 2>&1 &
    coordinator=$!
    started+=("$coordinator")
}

coordinator_is_gone() { not is_ours "$coordinator"; }

coordinator_ends() {
    local code=0

    await "the coordinator's end" coordinator_is_gone
    wait "$coordinator" || code=$?
    same "the coordinator's exit code" "$code" 0
}

# What is released is forgotten: the queue counts.
ended() { query "SELECT taken || ' taken, ' || ended || ' ended' FROM task_queue WHERE name = 'main'"; }
in_state() { query "SELECT count(*) FROM task WHERE state = '$1'"; }
# has_a_task INDEX - its newest process.
has_a_task() { [ "$(query "SELECT count(*) FROM task WHERE state = 'leased' AND worker = (SELECT incarnation FROM task_worker
    WHERE worker_index = $1 AND state = 'live')")" -ge 1 ]; }
attempts() { wc -l <"$TASKS_LOG"; }
attempts_at_least() { [ "$(attempts)" -ge "$1" ]; }

# attempts_right COUNT CAP - every task was begun, none more often than CAP times, and no attempt twice.
attempts_right() {
    same "tasks that were begun" "$(cut -d' ' -f1 "$TASKS_LOG" | sort -u | wc -l)" "$1"
    same "attempts that were begun twice" "$(sort "$TASKS_LOG" | uniq -d | wc -l)" 0
    holds "attempts of one task" "$(cut -d' ' -f1 "$TASKS_LOG" | sort | uniq -c | sort -rn | awk 'NR == 1 { print $1 }')" -le "$2"
}
