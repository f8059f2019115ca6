-- 0018: which hosts there are, and what they asked for, beside who has which ranks. Each host says it again within a second.

DROP TABLE host;
CREATE TABLE host (
    job           TEXT    NOT NULL REFERENCES job (job),
    launch        INTEGER NOT NULL, -- 0: of none, a host that waits
    id            INTEGER NOT NULL,
    place         INTEGER NOT NULL,
    name          TEXT    NOT NULL,
    address       TEXT    NOT NULL,
    port          INTEGER NOT NULL,
    first_rank    INTEGER NOT NULL,
    ranks         INTEGER NOT NULL,
    min_hosts     INTEGER NOT NULL,
    max_hosts     INTEGER NOT NULL,
    wait_ms       INTEGER NOT NULL,
    node_rank     INTEGER NOT NULL,
    ended         INTEGER NOT NULL,
    state         TEXT    NOT NULL,
    state_unix_ms INTEGER NOT NULL,
    PRIMARY KEY (job, launch, id)
) STRICT, WITHOUT ROWID;
