-- Who is stuck is asked with each look at the nodes: without this, each reads all events of the job.
CREATE INDEX IF NOT EXISTS event_stuck ON event (job, rank) WHERE kind = 'stuck' AND rank >= 0;
