-- 0014: jobs whose rows are being removed: a long one goes in slices, between the batches.

CREATE TABLE job_garbage (
    job TEXT PRIMARY KEY
) STRICT, WITHOUT ROWID;
