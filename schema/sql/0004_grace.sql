-- 0004: what a freeze is planned with and for. Times are those of the job, kept over its launches, so that the
-- first notice after a restart is planned too; the plan itself is for people: a start of the broker makes it again.

ALTER TABLE job ADD COLUMN step_p95_ms INTEGER NOT NULL DEFAULT 0;    -- of its slowest rank, 0 = never measured
ALTER TABLE job ADD COLUMN save_p95_ms INTEGER NOT NULL DEFAULT 0;    -- of `saves`
ALTER TABLE job ADD COLUMN saves TEXT NOT NULL DEFAULT '';            -- ms of its newest saves, oldest first, blanks between
ALTER TABLE job ADD COLUMN freeze_unix_ms INTEGER NOT NULL DEFAULT 0; -- when the waiting plan freezes, 0 = none waits
ALTER TABLE job ADD COLUMN plan TEXT NOT NULL DEFAULT '';             -- of the notices that stand: why then
ALTER TABLE notice ADD COLUMN flags INTEGER NOT NULL DEFAULT 0;       -- of NOTICE: 1 at once, 2 save now too
ALTER TABLE round ADD COLUMN plan TEXT NOT NULL DEFAULT '';           -- a termination: why it was frozen when it was
