-- Each query of the nodes asks who is stuck. Without this index it reads all events of the job.
CREATE INDEX IF NOT EXISTS event_stuck ON event (job, rank) WHERE kind = 'stuck' AND rank >= 0;
