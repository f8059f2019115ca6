-- 0020: one row sums up each launch that ended long ago. Questions about the job read this row instead of the rows of
-- the launch's ranks. Those are deleted later.

CREATE TABLE IF NOT EXISTS generation_past (
    job TEXT NOT NULL REFERENCES job (job),
    generation INTEGER NOT NULL,
    nodes INTEGER NOT NULL,           -- processes that joined
    step INTEGER NOT NULL,            -- how far it came; an import may add a checkpoint that is further
    unknown_ranks INTEGER NOT NULL,   -- that went without a word, so nobody knows how far they came ...
    unknown_unix_ms INTEGER NOT NULL, -- ... after this time, 0 = none
    PRIMARY KEY (job, generation)
) STRICT, WITHOUT ROWID;
