# lib_grace.sh - sourced after lib.sh: what is recorded of a termination's plan, and what must hold of it.

# plans - of each termination of the job that was planned ahead: its round, ms trained after the notice, its grace, the
# reserve of the plan, the margin at the commit, the step.
plans() {
    query "SELECT r.round, r.opened_unix_ms - n.received_unix_ms, n.left_ms,
            CAST(1000 * CAST(substr(r.plan, 1, instr(r.plan, ' ')) AS REAL) AS INTEGER), r.margin_ms, r.step
        FROM round r JOIN notice n ON n.job = r.job AND n.generation = r.generation AND instr(r.plan, n.id || ',') > 0
        WHERE r.job = '$job' AND r.cause = 'termination' AND r.state = 'committed' AND r.plan LIKE '%before the deadline%'
            AND r.plan NOT LIKE '%now already'
        ORDER BY r.round"
}

# planned_well COUNT - so many were planned; each saved before its deadline, and at least 80 % of what the reserve
# left of the grace was trained.
planned_well() {
    local count=0 round trained grace reserve margin step

    while IFS='|' read -r round trained grace reserve margin step; do
        count=$((count + 1))
        say "job $job, round $round: of $grace ms trained for $trained, reserve $reserve, saved step $step, left $margin"
        holds "reserve of round $round" "$reserve" -gt 0
        reserve=$((reserve + 100)) # the plan is told in tenths of a second, cut
        [ "$reserve" -lt "$grace" ] || reserve=$grace
        holds "ms trained in round $round" "$trained" -ge $(((grace - reserve) * 8 / 10))
        holds "margin of round $round" "$margin" -gt 0
    done < <(plans)
    same "terminations of job $job that were planned" "$count" "$1"
}
