# lib_manager.sh - sourced after lib.sh by the scripts manager_*.sh: ranks of prog_manager, and what they said.
trainer=$TESTS_DIR/proc/prog_manager

# steps_saved RANK - the steps that save told of, in order.
steps_saved() { sed -n 's/^saved //p' "$(log "$1")" | xargs; }

# all_have_saved STEPS - every rank was told of exactly these, in this order, and none got a wrong answer.
all_have_saved() {
    local rank

    for rank in "${!pids[@]}"; do
        same "steps saved by rank $rank of job $job" "$(steps_saved "$rank")" "$1"
        if grep WRONG "$(log "$rank")"; then fail "rank $rank of job $job, see above"; fi
    done
}

# steps_listed RANK - what all_steps gave at its end.
steps_listed() { sed -n 's/^all://p' "$(log "$1")" | xargs; }

# listed STEPS - every rank listed these.
listed() {
    local rank

    for rank in "${!pids[@]}"; do
        same "steps listed by rank $rank of job $job" "$(steps_listed "$rank")" "$1"
    done
}

# on_disk NAME... - exactly these directories are the job's checkpoints, each with a manifest.
on_disk() {
    local root=${checkpoints:-$dir/checkpoints-$job} name

    same "directories of job $job" "$(cd "$root" && printf '%s\n' * | sort -V | xargs)" "$*"
    for name; do
        [ -f "$root/$name/manifest.json" ] || fail "$root/$name has no manifest"
    done
}
