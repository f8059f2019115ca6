-- 0010: whose events a node knows. A database that is restored from an older copy gives numbers again that were used.

ALTER TABLE job ADD COLUMN lineage TEXT NOT NULL DEFAULT ''; -- starts of the broker, each with its first event's number - 1
