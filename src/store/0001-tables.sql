-- State and priority are the numbers of core's enums: 0 to 8 live, 9 to 11 have ended.

CREATE TABLE meta (
    key TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE job (
    id INTEGER PRIMARY KEY,
    tenant TEXT NOT NULL,
    user TEXT NOT NULL,
    name TEXT NOT NULL,
    uid INTEGER NOT NULL,
    submitted_ms INTEGER NOT NULL,
    replicas INTEGER NOT NULL,
    gpu_milli INTEGER NOT NULL,
    array_id INTEGER NOT NULL,
    array_index INTEGER NOT NULL,
    state INTEGER NOT NULL,
    priority INTEGER NOT NULL,
    state_ms INTEGER NOT NULL,
    started_ms INTEGER NOT NULL,
    ended_ms INTEGER NOT NULL,
    run INTEGER NOT NULL,
    exit_code INTEGER NOT NULL,
    exit_signal INTEGER NOT NULL,
    ended_as TEXT NOT NULL,
    message TEXT NOT NULL,
    place TEXT NOT NULL,
    ran_ms INTEGER NOT NULL,
    fails INTEGER NOT NULL
) STRICT;

-- Specs are long and lists do not show them.
CREATE TABLE job_spec (
    job INTEGER PRIMARY KEY,
    spec TEXT NOT NULL
) STRICT;

-- A list walks one range of ids each tenant and state.
CREATE INDEX job_by_tenant ON job (tenant, state, id);
CREATE INDEX job_by_user ON job (tenant, user, state, id);
CREATE INDEX job_by_name ON job (tenant, name, state, id);
CREATE INDEX job_by_end ON job (tenant, state_ms, state) WHERE state >= 9;
CREATE INDEX job_by_array ON job (array_id, id) WHERE array_id > 0;
CREATE INDEX job_living ON job (id) WHERE state < 9;

CREATE TABLE run (
    job INTEGER NOT NULL,
    run INTEGER NOT NULL,
    tenant TEXT NOT NULL,
    user TEXT NOT NULL,
    node TEXT NOT NULL,
    model TEXT NOT NULL,
    gpu_milli INTEGER NOT NULL,
    cpu_milli INTEGER NOT NULL,
    mem_mib INTEGER NOT NULL,
    started_ms INTEGER NOT NULL,
    ended_ms INTEGER NOT NULL,
    PRIMARY KEY (job, run)
) STRICT, WITHOUT ROWID;

-- All that usage is counted from, so that a month of it is read in one go.
CREATE INDEX run_by_end ON run (ended_ms, started_ms, tenant, user, model, gpu_milli, cpu_milli);

-- A line's seq is its segment's number times 2^32, plus its place in it.
CREATE TABLE journal_segment (
    number INTEGER PRIMARY KEY,
    t_ms INTEGER NOT NULL
) STRICT;

INSERT INTO journal_segment (number, t_ms) VALUES (1, 0);

CREATE TABLE journal (
    seq INTEGER PRIMARY KEY,
    t_ms INTEGER NOT NULL,
    line TEXT NOT NULL
) STRICT;

CREATE TABLE event (
    number INTEGER PRIMARY KEY,
    t_ms INTEGER NOT NULL,
    kind TEXT NOT NULL,
    tenant TEXT NOT NULL,
    job INTEGER NOT NULL,
    body TEXT NOT NULL
) STRICT;

CREATE INDEX event_by_tenant ON event (tenant, number);

CREATE TABLE account (
    name TEXT PRIMARY KEY,
    home TEXT NOT NULL,
    uid INTEGER NOT NULL,
    gid INTEGER NOT NULL,
    ours INTEGER NOT NULL,
    created_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE token (
    hash BLOB PRIMARY KEY,
    name TEXT NOT NULL,
    user TEXT NOT NULL,
    role INTEGER NOT NULL,
    created_ms INTEGER NOT NULL,
    expires_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE answer (
    user TEXT NOT NULL,
    key TEXT NOT NULL,
    t_ms INTEGER NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (user, key)
) STRICT, WITHOUT ROWID;

CREATE INDEX answer_by_time ON answer (t_ms);
