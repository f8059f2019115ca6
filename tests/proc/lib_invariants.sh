# lib_invariants.sh - what must hold in every database, whatever was killed: read from SQLite itself.
# Each rule is a query whose rows are its violations. The letters are those of schema/PROTOCOL.md.

declare -A invariant=(
    [integrity]="SELECT * FROM pragma_integrity_check WHERE integrity_check <> 'ok'"
    [foreign_keys]="SELECT * FROM pragma_foreign_key_check"

    # I1: all shards of a committed checkpoint have one round, one step, one generation, and the incarnations of its decision
    [I1_shards]="SELECT c.job, c.round, c.shards_required, count(p.rank) FROM checkpoint c
        LEFT JOIN shard s ON s.job = c.job AND s.round = c.round
        LEFT JOIN participant p ON p.job = s.job AND p.round = s.round AND p.rank = s.rank
            AND p.incarnation = s.incarnation AND p.writer = 1
        WHERE c.state IN ('committed', 'superseded') GROUP BY c.job, c.round
        HAVING count(p.rank) <> c.shards_required OR count(s.rank) <> c.shards_required"
    [I1_required]="SELECT c.job, c.round, c.shards_required FROM checkpoint c WHERE c.state = 'committed'
        AND c.shards_required <> CASE c.layout WHEN 'sharded' THEN c.world_size ELSE 1 END"
    [I1_round]="SELECT c.job, c.round, c.step, r.step, r.state FROM checkpoint c
        LEFT JOIN round r ON r.job = c.job AND r.round = c.round AND r.generation = c.generation
        WHERE c.state = 'committed' AND (r.round IS NULL OR r.step <> c.step OR r.state <> 'committed')"
    [I1_generation]="SELECT s.job, s.round, s.rank FROM shard s JOIN checkpoint c ON c.job = s.job AND c.round = s.round
        LEFT JOIN node n ON n.job = s.job AND n.incarnation = s.incarnation
        WHERE c.state = 'committed' AND (n.generation IS NULL OR n.generation <> c.generation OR n.rank <> s.rank)"
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

    # I7: at most one open round a job
    [I7_open]="SELECT job, count(*) FROM round WHERE state IN ('freezing', 'decided') GROUP BY job HAVING count(*) > 1"

    # I9: a generation resumes from the newest that was committed before it and not superseded
    [I9_newest]="SELECT g.job, g.generation, g.resume_step, c.step, c.round FROM generation g JOIN checkpoint c
        ON c.job = g.job AND c.generation < g.generation AND c.state = 'committed' AND c.step > g.resume_step"
    [I9_whole]="SELECT g.job, g.generation, g.resume_checkpoint FROM generation g
        LEFT JOIN checkpoint c ON c.job = g.job AND c.round = g.resume_checkpoint
        WHERE g.resume_checkpoint <> 0 AND (c.step IS NULL OR c.step <> g.resume_step
            OR c.state NOT IN ('committed', 'superseded', 'deleted') OR c.generation >= g.generation)"
    [I9_same]="SELECT job, generation, count(DISTINCT checkpoint_and_step) FROM
        (SELECT job, generation, round || '/' || step AS checkpoint_and_step FROM event WHERE kind = 'resume')
        GROUP BY job, generation HAVING count(DISTINCT checkpoint_and_step) > 1
        AND generation NOT IN (SELECT generation FROM generation WHERE fallback = 1)"
)
checked=0 # databases looked at

# invariants [DATABASE] - every rule holds in it.
invariants() {
    local name rows

    for name in "${!invariant[@]}"; do
        rows=$("$sql" "${1:-$db}" "${invariant[$name]}") || fail "the rule $name cannot be asked"
        [ -z "$rows" ] || fail "invariant $name is broken: $rows"
    done
    checked=$((checked + 1))
}
