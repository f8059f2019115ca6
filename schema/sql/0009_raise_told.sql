-- 0009: an error that was raised while its coordinator died is raised to the next one, too.

ALTER TABLE task_queue ADD COLUMN told INTEGER NOT NULL DEFAULT 0; -- how many of the raised a call has returned
UPDATE task_queue SET told = raised;
