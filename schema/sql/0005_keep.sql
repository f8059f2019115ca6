-- 0005: what a job keeps and when the broker saves for it, who holds on to a checkpoint, and what a
-- checkpoint's save cost. A checkpoint's state `deleting` is a decision that is not carried out yet.

CREATE TABLE policy (
    job TEXT PRIMARY KEY REFERENCES job (job),
    generation INTEGER NOT NULL,       -- the launch that told them: they count for it alone
    keep TEXT NOT NULL,                -- as in POLICIES
    save TEXT NOT NULL,
    trash TEXT NOT NULL
) STRICT;

CREATE TABLE pin (
    job TEXT NOT NULL REFERENCES job (job),
    checkpoint INTEGER NOT NULL,
    id TEXT NOT NULL,
    until_unix_ms INTEGER NOT NULL,    -- 0 = until it is taken back
    PRIMARY KEY (job, checkpoint, id)
) STRICT, WITHOUT ROWID;

CREATE TABLE checkpoint_custom (       -- only of those that have some
    job TEXT NOT NULL,
    round INTEGER NOT NULL,
    custom TEXT NOT NULL,              -- JSON
    PRIMARY KEY (job, round),
    FOREIGN KEY (job, round) REFERENCES checkpoint (job, round)
) STRICT;

ALTER TABLE checkpoint ADD COLUMN blocked_ms INTEGER NOT NULL DEFAULT -1; -- training stood still, longest writer
ALTER TABLE checkpoint ADD COLUMN waited_ms INTEGER NOT NULL DEFAULT 0;   -- for the save before, longest writer
ALTER TABLE checkpoint ADD COLUMN total_ms INTEGER NOT NULL DEFAULT -1;   -- from the decision to the commit
ALTER TABLE shard ADD COLUMN waited_ms INTEGER NOT NULL DEFAULT 0;
