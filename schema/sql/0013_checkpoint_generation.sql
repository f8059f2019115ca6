-- How far a generation saved is asked for each of them: without this, each reads all checkpoints of its job.
CREATE INDEX checkpoint_generation ON checkpoint (job, generation, state, step);
