-- 0017: hosts that form a job's launches by themselves (`muster run --nodes`): who has which ranks.

CREATE TABLE host (
    job            TEXT    NOT NULL REFERENCES job (job),
    launch         INTEGER NOT NULL,
    place          INTEGER NOT NULL,
    id             INTEGER NOT NULL,
    name           TEXT    NOT NULL,
    address        TEXT    NOT NULL,
    port           INTEGER NOT NULL,
    first_rank     INTEGER NOT NULL,
    ranks          INTEGER NOT NULL,
    formed_unix_ms INTEGER NOT NULL,
    PRIMARY KEY (job, launch, place)
) STRICT, WITHOUT ROWID;
