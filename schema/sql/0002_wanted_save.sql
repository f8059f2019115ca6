-- 0002: what a start of the broker must know of saves that are asked for and not open yet: which round an
-- operator's request was answered with (a resend gets the same number), and the save that is still wanted,
-- so that two crashes in a row do not forget a retry.

ALTER TABLE job ADD COLUMN save_now_round INTEGER NOT NULL DEFAULT 0; -- answered for save_now_id, 0 = not known
ALTER TABLE job ADD COLUMN want TEXT NOT NULL DEFAULT '';             -- cause of the round to be opened, '' = none
ALTER TABLE job ADD COLUMN want_attempt INTEGER NOT NULL DEFAULT 0;   -- number that round gets of its cause
ALTER TABLE job ADD COLUMN want_aborted_steps INTEGER NOT NULL DEFAULT 0; -- 1: its freeze breaks off steps
