-- 0003: what each node's notice sources stand at, as its last heartbeat told: JSON, see WIRE.md.

ALTER TABLE progress ADD COLUMN sources TEXT NOT NULL DEFAULT '';
