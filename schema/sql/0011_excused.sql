-- 0011: attempts that may have begun and do not count against the task. Their numbers are not given again.

ALTER TABLE task ADD COLUMN excused INTEGER NOT NULL DEFAULT 0;
