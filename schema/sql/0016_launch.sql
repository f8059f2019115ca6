-- 0016: where launches began. What earlier launches saved beyond that does not count, and no row of a checkpoint says
-- so any more: but for those that were superseded by a launch of which nobody knows where it began.

CREATE TABLE launch ( -- a generation that took steps
    job TEXT NOT NULL REFERENCES job (job),
    generation INTEGER NOT NULL,
    began_step INTEGER NOT NULL, -- there, or before
    PRIMARY KEY (job, generation)
) STRICT, WITHOUT ROWID;
INSERT INTO launch SELECT job, generation, resume_step FROM generation
    WHERE started_unix_ms > 0 AND opened_unix_ms > 0 OR end_text = 'found on disk' AND resume_step > 0;
INSERT OR IGNORE INTO launch SELECT g.job, g.generation, MIN(c.step) - 1
    FROM generation g JOIN checkpoint c ON c.job = g.job AND c.generation = g.generation AND c.committed_unix_ms > 0
    WHERE g.started_unix_ms > 0 OR g.end_text = 'found on disk' GROUP BY g.job, g.generation;
UPDATE checkpoint SET state = 'committed' WHERE state = 'superseded' AND EXISTS (SELECT 1 FROM launch l
    WHERE l.job = checkpoint.job AND l.generation > checkpoint.generation AND l.began_step < checkpoint.step);
