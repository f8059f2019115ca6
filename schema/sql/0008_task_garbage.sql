-- 0008: rows of tasks that nobody reads any more and that are too many to be deleted at once. Those of a queue that
-- is there have been released; of one that is not there they are what was left of it.

CREATE TABLE task_garbage (
    queue INTEGER PRIMARY KEY,
    first INTEGER NOT NULL,            -- numbers of tasks: before it nothing is left ...
    last INTEGER NOT NULL              -- ... and behind it all is to stay
) STRICT;
