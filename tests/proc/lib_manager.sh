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

# same_on_all WHAT SED-EXPRESSION - every rank said the same, and something; sets $said.
same_on_all() {
    local rank

    said=$(sed -n "$2" "$(log 0)" | xargs)
    for rank in "${!pids[@]}"; do
        same "$1 of rank $rank" "$(sed -n "$2" "$(log "$rank")" | xargs)" "$said"
        if grep WRONG "$(log "$rank")"; then fail "rank $rank of job $job, see above"; fi
    done
    holds "$1 of job $job" -n "$said"
}

# gaps CONDITION - how many neighbours among the job's rounds are not as they should be: a is before b.
gaps() { query "SELECT count(*) FROM round a JOIN round b ON b.job = a.job AND b.generation = a.generation AND b.round = a.round + 1
    JOIN checkpoint c ON c.job = a.job AND c.round = a.round WHERE a.job = '$job' AND NOT ($1)"; }
