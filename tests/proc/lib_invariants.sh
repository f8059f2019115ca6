# lib_invariants.sh - what must hold in every database, whatever was killed: read from SQLite itself.
# Each rule is a query whose rows are its violations. The letters are those of schema/PROTOCOL.md, but for tasks.

# who wrote what an import found on disk, its manifests alone tell
imported="EXISTS (SELECT 1 FROM round f WHERE f.job = c.job AND f.round = c.round AND f.reason = 'found on disk')"

declare -A invariant=(
    [integrity]="SELECT * FROM pragma_integrity_check WHERE integrity_check <> 'ok'"
    [foreign_keys]="SELECT * FROM pragma_foreign_key_check"

    # I1: all shards of a committed checkpoint have one round, one step, one generation, and the incarnations of its decision
    [I1_shards]="SELECT c.job, c.round, c.shards_required, count(p.rank) FROM checkpoint c
        LEFT JOIN shard s ON s.job = c.job AND s.round = c.round
        LEFT JOIN participant p ON p.job = s.job AND p.round = s.round AND p.rank = s.rank
            AND p.incarnation = s.incarnation AND p.writer = 1
        WHERE c.state = 'committed' GROUP BY c.job, c.round
        HAVING count(p.rank) <> c.shards_required AND NOT $imported OR count(s.rank) <> c.shards_required"
    [I1_required]="SELECT c.job, c.round, c.shards_required FROM checkpoint c WHERE c.state = 'committed'
        AND c.shards_required <> CASE c.layout WHEN 'sharded' THEN c.world_size ELSE 1 END"
    [I1_round]="SELECT c.job, c.round, c.step, r.step, r.state FROM checkpoint c
        LEFT JOIN round r ON r.job = c.job AND r.round = c.round AND r.generation = c.generation
        WHERE c.state = 'committed' AND (r.round IS NULL OR r.step <> c.step OR r.state <> 'committed')"
    [I1_generation]="SELECT s.job, s.round, s.rank FROM shard s JOIN checkpoint c ON c.job = s.job AND c.round = s.round
        LEFT JOIN node n ON n.job = s.job AND n.incarnation = s.incarnation
        WHERE c.state = 'committed' AND NOT $imported AND (n.generation IS NULL OR n.generation <> c.generation OR n.rank <> s.rank)"
    [I1_files]="SELECT s.job, s.round, s.rank, s.files, count(f.path) FROM shard s
        LEFT JOIN shard_file f ON f.job = s.job AND f.round = s.round AND f.rank = s.rank
        GROUP BY s.job, s.round, s.rank HAVING count(f.path) <> s.files"

    # I3: what was told has a number, and no number is missing or used twice
    [I3_numbers]="SELECT e.job, count(*), min(e.seq), max(e.seq), j.seq FROM event e JOIN job j ON j.job = e.job
        GROUP BY e.job HAVING max(e.seq) <> j.seq OR count(*) <> max(e.seq) - min(e.seq) + 1"

    # I4: a round decides at most once, also across broker restarts, and ends at most once
    [I4_decided]="SELECT job, round, count(*) FROM event WHERE kind = 'decision' GROUP BY job, round HAVING count(*) > 1"
    [I4_step]="SELECT e.job, e.round, e.step, r.step FROM event e LEFT JOIN round r ON r.job = e.job AND r.round = e.round
        WHERE e.kind IN ('decision', 'commit') AND (r.step IS NULL OR r.step <> e.step)"
    [I4_ended]="SELECT job, round, count(*) FROM event WHERE kind IN ('commit', 'abort', 'unchanged') AND round > 0
        GROUP BY job, round HAVING count(*) > 1"
    [I4_undecided]="SELECT c.job, c.round FROM event c WHERE c.kind = 'commit' AND NOT EXISTS
        (SELECT 1 FROM event d WHERE d.job = c.job AND d.round = c.round AND d.kind = 'decision' AND d.seq < c.seq)"

    # I5: what is over has ended: no round stands open in a generation that has ended, and an abort says why
    [I5_ended]="SELECT r.job, r.round, r.state FROM round r JOIN generation g ON g.job = r.job AND g.generation = r.generation
        WHERE g.state = 'ended' AND r.state IN ('freezing', 'decided')"
    [I5_reason]="SELECT job, round FROM round WHERE state = 'aborted' AND (reason = '' OR reason_code = 0)"

    # I6: what is stale changes nothing: who takes part in a round is of its generation, a round of an earlier generation
    # does not begin, decide or commit after a later one was opened, and a rank has one live incarnation
    [I6_members]="SELECT p.job, p.round, p.rank, n.generation, r.generation FROM participant p
        JOIN round r ON r.job = p.job AND r.round = p.round JOIN node n ON n.job = p.job AND n.incarnation = p.incarnation
        WHERE n.generation <> r.generation"
    [I6_late]="SELECT e.job, e.seq, e.kind, e.generation FROM event e WHERE e.kind IN ('freeze', 'decision', 'commit')
        AND EXISTS (SELECT 1 FROM event o WHERE o.job = e.job AND o.kind = 'generation opened'
            AND o.generation > e.generation AND o.seq < e.seq)"
    [I6_lives]="SELECT job, generation, role, rank, count(*) FROM node WHERE state IN ('joined', 'restored')
        GROUP BY job, role, rank HAVING count(*) > 1"

    # I7: at most one open round a job
    [I7_open]="SELECT job, count(*) FROM round WHERE state IN ('freezing', 'decided') GROUP BY job HAVING count(*) > 1"

    # I9: a generation resumes from the newest that counted before it, but for one that was falling back
    [I9_newest]="SELECT g.job, g.generation, g.resume_step, c.step, c.round FROM generation g JOIN checkpoint c
        ON c.job = g.job AND c.generation < g.generation AND c.state = 'committed' AND c.step > g.resume_step
        WHERE g.fallback = 0 AND NOT EXISTS (SELECT 1 FROM launch l WHERE l.job = c.job
            AND l.generation > c.generation AND l.generation < g.generation AND l.began_step < c.step)"
    [I9_whole]="SELECT g.job, g.generation, g.resume_checkpoint FROM generation g
        LEFT JOIN checkpoint c ON c.job = g.job AND c.round = g.resume_checkpoint
        WHERE g.resume_checkpoint <> 0 AND (c.step IS NULL OR c.step <> g.resume_step
            OR c.state NOT IN ('committed', 'deleted') OR c.generation >= g.generation)"
    [I9_same]="SELECT job, generation, count(DISTINCT checkpoint_and_step) FROM
        (SELECT job, generation, round || '/' || step AS checkpoint_and_step FROM event WHERE kind = 'resume')
        GROUP BY job, generation HAVING count(DISTINCT checkpoint_and_step) > 1
        AND generation NOT IN (SELECT generation FROM generation WHERE fallback = 1)"

    # I10: the error that everybody is told of is the first that was recorded
    [I10_first]="SELECT g.job, g.generation, g.error_rank, e.rank FROM generation g JOIN event e ON e.job = g.job AND e.seq =
        (SELECT min(seq) FROM event WHERE job = g.job AND generation = g.generation
            AND kind IN ('peer error', 'node lost', 'rank restarted')) WHERE e.rank <> g.error_rank"
    [I10_told]="SELECT g.job, g.generation, g.error_rank FROM generation g WHERE g.error_rank >= 0 AND NOT EXISTS
        (SELECT 1 FROM event WHERE job = g.job AND generation = g.generation AND rank = g.error_rank
            AND kind IN ('peer error', 'node lost', 'rank restarted', 'restore failed'))"

    # I11: nothing that is pinned or being restored is deleted, nor the newest unless a policy lets it go
    [I11_pinned]="SELECT p.job, p.checkpoint, p.id, c.state FROM pin p JOIN checkpoint c
        ON c.job = p.job AND c.round = p.checkpoint WHERE c.state IN ('deleting', 'deleted')"
    [I11_restored]="SELECT g.job, g.generation, c.round, c.state FROM generation g JOIN checkpoint c
        ON c.job = g.job AND c.round = g.resume_checkpoint WHERE g.state = 'joining' AND c.state IN ('deleting', 'deleted')"
    [I11_newest]="SELECT c.job, c.round, c.step, c.state FROM checkpoint c WHERE c.state IN ('deleting', 'deleted')
        AND c.job NOT IN (SELECT job FROM policy) AND NOT EXISTS
        (SELECT 1 FROM checkpoint n WHERE n.job = c.job AND n.round > c.round AND n.state = 'committed')"

    # Tasks, T1 to T4 of broker/core/tasks/tasks.h. None is lost: what is not released is there; what has not ended is counted so
    [T_lost]="SELECT queue, taken, released, count(id), max(id) FROM task_queue LEFT JOIN task
        ON id BETWEEN (queue << 40) + released + 1 AND (queue << 40) + (1 << 40) - 1
        GROUP BY queue HAVING count(id) <> taken - released OR max(id) > (queue << 40) + taken"
    [T_ended]="SELECT queue, taken, ended, count(id) FROM task_queue LEFT JOIN task ON id >> 40 = queue
        AND state IN ('queued', 'leased') GROUP BY queue HAVING count(id) <> taken - ended"
    [T_owner]="SELECT id FROM task WHERE id >> 40 NOT IN (SELECT queue FROM task_queue UNION SELECT queue FROM task_garbage)
        UNION ALL SELECT id FROM task_part WHERE id NOT IN (SELECT id FROM task)"
    # each attempt but the present or last one was a loss or excused, and of losses there are not too many
    [T_attempts]="SELECT id, state, attempt, losses, worker FROM task WHERE NOT CASE state
        WHEN 'queued' THEN attempt = losses + excused AND worker = 0
        WHEN 'leased' THEN attempt = losses + excused + 1 WHEN 'done' THEN attempt = losses + excused + 1 AND worker <> 0
        WHEN 'failed' THEN attempt - losses - excused IN (0, 1)
        WHEN 'cancelled' THEN attempt - losses - excused IN (0, 1) ELSE 0 END"
    [T_cap]="SELECT id, attempt, max_attempts FROM task JOIN task_queue ON queue = id >> 40 WHERE attempt - excused > max_attempts"
    [T_leases]="SELECT t.id, t.worker, w.incarnation, w.state FROM task t JOIN task_queue q ON q.queue = t.id >> 40
        LEFT JOIN task_worker w ON w.job = q.job AND w.worker_index = t.worker_index
        WHERE t.state = 'leased' AND (w.incarnation IS NOT t.worker OR w.state <> 'live')"
    [T_credit]="SELECT worker, takes, count(*) FROM task JOIN task_worker ON incarnation = worker
        JOIN task_queue ON queue = id >> 40 WHERE task.state = 'leased' GROUP BY worker HAVING count(*) > takes"
    [T_result]="SELECT t.id, t.bytes, length(t.result) FROM task t WHERE t.state = 'done' AND t.bytes <> length(t.result)
        + (SELECT ifnull(sum(length(p.bytes)), 0) FROM task_part p WHERE p.id = t.id AND p.attempt = t.attempt)"
    [T_error]="SELECT queue, error_number FROM task_queue WHERE error_pending AND (error_number = 0 OR EXISTS
        (SELECT 1 FROM task WHERE id = (queue << 40) + error_number AND state <> 'failed'))"
)
checked=0 # databases looked at

# invariants [DATABASE] - every rule holds in it.
invariants() {
    local name rows broken='' ask=''

    for name in "${!invariant[@]}"; do
        ask+="${ask:+ UNION ALL }SELECT '$name' WHERE EXISTS (${invariant[$name]})"
    done
    broken=$("$sql" "${1:-$db}" "$ask") || fail "the rules cannot be asked"
    for name in $broken; do
        rows=$("$sql" "${1:-$db}" "${invariant[$name]}")
        fail "invariant $name is broken: $rows"
    done
    checked=$((checked + 1))
}
