-- 0006: queues of tasks, their results, their workers. A task's id is queue * 2^40 + number, so that a queue's
-- tasks stand together in the order of their numbers.

CREATE TABLE task_queue (
    queue INTEGER PRIMARY KEY,
    job TEXT NOT NULL,                 -- need not have a row of its own: tasks do not need steps
    name TEXT NOT NULL,
    coordinator INTEGER NOT NULL,      -- incarnation that holds it
    taken INTEGER NOT NULL,            -- highest number
    ended INTEGER NOT NULL,            -- how many have
    released INTEGER NOT NULL,         -- up to here nobody asks again
    max_queued INTEGER NOT NULL,
    max_attempts INTEGER NOT NULL,
    error_pending INTEGER NOT NULL,    -- nothing is given to workers until it was raised
    error_number INTEGER NOT NULL,     -- the newest first error, 0 = none yet
    error_status INTEGER NOT NULL,
    error_code INTEGER NOT NULL,
    error_text TEXT NOT NULL,
    raised INTEGER NOT NULL,           -- how often one was
    cancelled_to INTEGER NOT NULL,     -- the highest number then
    created_unix_ms INTEGER NOT NULL,
    UNIQUE (job, name)
) STRICT;

CREATE TABLE task (
    id INTEGER PRIMARY KEY,
    state TEXT NOT NULL,               -- queued, leased, done, failed, cancelled
    attempt INTEGER NOT NULL,          -- how often it was given to a worker
    losses INTEGER NOT NULL,           -- how often that was lost with it, or it took too long
    worker INTEGER NOT NULL,           -- incarnation of the last one, 0 = none yet
    worker_index INTEGER NOT NULL,
    status INTEGER NOT NULL DEFAULT 0, -- of a failed one: a status code ...
    code INTEGER NOT NULL DEFAULT 0,   -- ... and the handler's own
    bytes INTEGER NOT NULL DEFAULT 0,  -- of the result
    timeout_ms INTEGER NOT NULL,       -- 0 = none
    scheduled_unix_ms INTEGER NOT NULL,
    leased_unix_ms INTEGER NOT NULL DEFAULT 0,
    ended_unix_ms INTEGER NOT NULL DEFAULT 0,
    fn TEXT NOT NULL,
    text TEXT NOT NULL DEFAULT '',
    uses BLOB NOT NULL,                -- numbers of per-worker values
    args BLOB NOT NULL,
    result BLOB NOT NULL DEFAULT x''   -- a longer one is in task_part
) STRICT;

CREATE TABLE task_part (
    id INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    offset INTEGER NOT NULL,
    bytes BLOB NOT NULL,
    PRIMARY KEY (id, attempt, offset)
) STRICT;

CREATE TABLE task_resource (           -- a value that every worker makes for itself
    queue INTEGER NOT NULL REFERENCES task_queue (queue),
    number INTEGER NOT NULL,
    fn TEXT NOT NULL,
    args BLOB NOT NULL,
    PRIMARY KEY (queue, number)
) STRICT;

CREATE TABLE task_worker (             -- the newest process of each index
    job TEXT NOT NULL,
    worker_index INTEGER NOT NULL,
    incarnation INTEGER NOT NULL,
    node INTEGER NOT NULL,             -- incarnation of the node that it lives in, 0 = none
    host TEXT NOT NULL,
    pid INTEGER NOT NULL,
    slots INTEGER NOT NULL,            -- tasks at the same time
    takes INTEGER NOT NULL,            -- tasks given to it at once
    state TEXT NOT NULL,               -- live, left, lost
    unix_ms INTEGER NOT NULL,          -- since when
    PRIMARY KEY (job, worker_index)
) STRICT;
