-- 0012: what befell the broker itself, for the stories of all jobs: its starts, and the times in which it could not write.

CREATE TABLE broker_past (
    id      INTEGER PRIMARY KEY,
    unix_ms INTEGER NOT NULL,
    kind    TEXT    NOT NULL CHECK (kind IN ('broker started', 'broker blocked')),
    text    TEXT    NOT NULL
) STRICT;
