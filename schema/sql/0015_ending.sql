-- 0015: when a generation began to end. A rank whose process is older and that comes later belongs to that launch.

ALTER TABLE generation ADD COLUMN ending_unix_ms INTEGER NOT NULL DEFAULT 0;
