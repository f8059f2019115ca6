-- 0001: jobs, generations, nodes, notices, events, rounds, participants, checkpoints, shards, progress.
-- Names of states, causes, kinds are stored as their words (wire.h gives them), so that a reader of
-- the file needs no table of numbers. Times: *_unix_ms for people; *_boot_ms count from boot_id's boot.
-- A checkpoint is named by (job, round): a round makes at most one.

CREATE TABLE meta (
    key TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT;

CREATE TABLE job (
    job TEXT PRIMARY KEY,
    state TEXT NOT NULL,               -- state of its newest generation
    state_unix_ms INTEGER NOT NULL,    -- since when
    generation INTEGER NOT NULL,       -- newest
    seq INTEGER NOT NULL,              -- newest event
    round INTEGER NOT NULL,            -- highest round number used
    save_now_id TEXT NOT NULL DEFAULT '', -- the operator's last request, so that a resend makes no second round
    created_unix_ms INTEGER NOT NULL
) STRICT;

CREATE TABLE generation (
    job TEXT NOT NULL REFERENCES job (job),
    generation INTEGER NOT NULL,
    state TEXT NOT NULL,               -- joining, running, ending, ended
    world_size INTEGER NOT NULL,
    layout TEXT NOT NULL,
    checkpoint_dir TEXT NOT NULL,
    resume_checkpoint INTEGER NOT NULL, -- round number, 0 = from the start
    resume_step INTEGER NOT NULL,
    resume_ready INTEGER NOT NULL,      -- manifest and final name in place, resume event journaled
    fallback INTEGER NOT NULL,          -- an older checkpoint may be taken if one cannot be restored
    end_status INTEGER NOT NULL DEFAULT 0, -- why it ends: a status code for its nodes
    end_text TEXT NOT NULL DEFAULT '',
    error_rank INTEGER NOT NULL DEFAULT -1, -- first error
    error_code INTEGER NOT NULL DEFAULT 0,
    error_text TEXT NOT NULL DEFAULT '',
    opened_unix_ms INTEGER NOT NULL,
    started_unix_ms INTEGER NOT NULL DEFAULT 0,
    ended_unix_ms INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (job, generation)
) STRICT;

CREATE TABLE node (
    job TEXT NOT NULL REFERENCES job (job),
    incarnation INTEGER NOT NULL,      -- the 64 bits, as a signed number
    generation INTEGER NOT NULL,
    role TEXT NOT NULL,
    rank INTEGER NOT NULL,
    host TEXT NOT NULL,
    pid INTEGER NOT NULL,
    state TEXT NOT NULL,               -- joined, restored, left, lost, fenced
    last_request INTEGER NOT NULL,     -- the last number taken ...
    last_code INTEGER NOT NULL,        -- ... and its answer
    last_value INTEGER NOT NULL DEFAULT 0,
    leave_why TEXT NOT NULL DEFAULT '',
    exit_code INTEGER NOT NULL DEFAULT 0,
    joined_unix_ms INTEGER NOT NULL,
    ended_unix_ms INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (job, incarnation)
) STRICT;
CREATE INDEX node_generation ON node (job, generation, role, rank);

CREATE TABLE progress ( -- written at most once a second a job, never synced for itself
    job TEXT NOT NULL REFERENCES job (job),
    incarnation INTEGER NOT NULL,
    begun INTEGER NOT NULL,
    done INTEGER NOT NULL,
    phase TEXT NOT NULL,
    step_p95_ms INTEGER NOT NULL,
    applied_seq INTEGER NOT NULL,
    heard_unix_ms INTEGER NOT NULL,
    PRIMARY KEY (job, incarnation)
) STRICT;

CREATE TABLE notice (
    job TEXT NOT NULL REFERENCES job (job),
    generation INTEGER NOT NULL,
    id TEXT NOT NULL,
    rank INTEGER NOT NULL,
    incarnation INTEGER NOT NULL,      -- 0: told by an operator
    kind TEXT NOT NULL,
    source TEXT NOT NULL,
    state TEXT NOT NULL,               -- active, cancelled, served
    cancellable INTEGER NOT NULL,
    left_ms INTEGER NOT NULL,          -- as told; -1 unknown
    boot_id TEXT NOT NULL,
    deadline_boot_ms INTEGER NOT NULL, -- what the broker plans with
    text TEXT NOT NULL,
    round INTEGER NOT NULL DEFAULT 0,  -- the last round that it caused or joined
    received_unix_ms INTEGER NOT NULL,
    PRIMARY KEY (job, generation, id)
) STRICT;

CREATE TABLE event (
    job TEXT NOT NULL REFERENCES job (job),
    seq INTEGER NOT NULL,
    generation INTEGER NOT NULL,
    kind TEXT NOT NULL,
    round INTEGER NOT NULL,
    rank INTEGER NOT NULL,
    step INTEGER NOT NULL,
    text TEXT NOT NULL,
    unix_ms INTEGER NOT NULL,
    boot_id TEXT NOT NULL,
    deadline_boot_ms INTEGER NOT NULL, -- 0: left_ms is as in body
    body BLOB NOT NULL,                -- the EVENT message
    PRIMARY KEY (job, seq)
) STRICT, WITHOUT ROWID;

CREATE TABLE round (
    job TEXT NOT NULL REFERENCES job (job),
    round INTEGER NOT NULL,
    generation INTEGER NOT NULL,
    attempt INTEGER NOT NULL,          -- 1.. of its cause
    cause TEXT NOT NULL,
    state TEXT NOT NULL,
    step INTEGER NOT NULL,             -- S, -1 while undecided
    aborted_steps INTEGER NOT NULL,    -- 1: frozen with abort
    culprit_rank INTEGER NOT NULL DEFAULT -1,
    reason_code INTEGER NOT NULL DEFAULT 0,
    reason TEXT NOT NULL DEFAULT '',
    final INTEGER NOT NULL DEFAULT 0,  -- aborted, and no further attempt follows
    boot_id TEXT NOT NULL,
    deadline_boot_ms INTEGER NOT NULL DEFAULT 0, -- 0 = none
    opened_boot_ms INTEGER NOT NULL,
    opened_unix_ms INTEGER NOT NULL,
    decided_unix_ms INTEGER NOT NULL DEFAULT 0,
    captured_unix_ms INTEGER NOT NULL DEFAULT 0,
    ended_unix_ms INTEGER NOT NULL DEFAULT 0,
    margin_ms INTEGER NOT NULL DEFAULT -1, -- left to the deadline at the commit
    PRIMARY KEY (job, round)
) STRICT;

CREATE TABLE participant (
    job TEXT NOT NULL,
    round INTEGER NOT NULL,
    rank INTEGER NOT NULL,
    incarnation INTEGER NOT NULL,
    writer INTEGER NOT NULL,
    begun INTEGER NOT NULL,            -- as reported, -1 = not yet
    done INTEGER NOT NULL,
    reported_ms INTEGER NOT NULL,      -- since the round was opened, -1 = not yet; so all below
    at_step_ms INTEGER NOT NULL,
    captured_ms INTEGER NOT NULL,
    saved_ms INTEGER NOT NULL,
    save_ms INTEGER NOT NULL,          -- how long its save took
    failed TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (job, round, rank),
    FOREIGN KEY (job, round) REFERENCES round (job, round)
) STRICT;

CREATE TABLE checkpoint (
    job TEXT NOT NULL,
    round INTEGER NOT NULL,
    generation INTEGER NOT NULL,
    step INTEGER NOT NULL,
    state TEXT NOT NULL,               -- writing, committed, failed, superseded, deleted
    cause TEXT NOT NULL,
    layout TEXT NOT NULL,
    world_size INTEGER NOT NULL,
    shards_required INTEGER NOT NULL,
    bytes INTEGER NOT NULL,
    path TEXT NOT NULL,                -- '' until its final name is known to be in place
    epoch INTEGER NOT NULL,            -- as the lowest writer told, -1 = not told
    step_in_epoch INTEGER NOT NULL,
    data_position INTEGER NOT NULL,
    pinned INTEGER NOT NULL DEFAULT 0,
    metrics TEXT NOT NULL DEFAULT '',
    committed_unix_ms INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (job, round),
    FOREIGN KEY (job, round) REFERENCES round (job, round)
) STRICT;
CREATE INDEX checkpoint_step ON checkpoint (job, state, step);

CREATE TABLE shard (
    job TEXT NOT NULL,
    round INTEGER NOT NULL,
    rank INTEGER NOT NULL,
    incarnation INTEGER NOT NULL,
    files INTEGER NOT NULL,
    bytes INTEGER NOT NULL,
    save_ms INTEGER NOT NULL,
    blocked_ms INTEGER NOT NULL,
    saved_unix_ms INTEGER NOT NULL,
    PRIMARY KEY (job, round, rank),
    FOREIGN KEY (job, round) REFERENCES checkpoint (job, round)
) STRICT;

CREATE TABLE shard_file ( -- may precede its shard's row: FILES come before SAVED
    job TEXT NOT NULL,
    round INTEGER NOT NULL,
    rank INTEGER NOT NULL,
    path TEXT NOT NULL,
    bytes INTEGER NOT NULL,
    checksum TEXT NOT NULL,
    PRIMARY KEY (job, round, rank, path),
    FOREIGN KEY (job, round) REFERENCES checkpoint (job, round)
) STRICT, WITHOUT ROWID;
