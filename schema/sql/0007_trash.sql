-- 0007: a deletion goes where the launch that decided it said, whichever launch's hand carries it out.

ALTER TABLE checkpoint ADD COLUMN trash TEXT NOT NULL DEFAULT ''; -- folder it is moved to, '' = removed
