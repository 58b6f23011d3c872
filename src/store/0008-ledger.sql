-- Whose the machines' GPUs were, by day as in usage_day, in thousandths of a GPU x ms: see core/ledger.h.

CREATE TABLE ledger_day (
    day INTEGER NOT NULL,
    tenant TEXT NOT NULL,
    entitled INTEGER NOT NULL,
    got INTEGER NOT NULL,
    lent INTEGER NOT NULL,
    borrowed INTEGER NOT NULL,
    frozen INTEGER NOT NULL,
    wanted INTEGER NOT NULL,
    PRIMARY KEY (day, tenant)
) STRICT, WITHOUT ROWID;

CREATE TABLE machines_day (
    day INTEGER PRIMARY KEY,
    total INTEGER NOT NULL, -- the others make it up
    got INTEGER NOT NULL,
    idle INTEGER NOT NULL,
    away INTEGER NOT NULL
) STRICT;
