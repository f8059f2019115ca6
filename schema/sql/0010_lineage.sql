-- 0010: whose events a node knows. A database that is put back to an older copy gives numbers again that were used.

ALTER TABLE job ADD COLUMN lineage TEXT NOT NULL DEFAULT ''; -- starts of the broker, each with its first event's number - 1
