-- How many jobs each tenant has in each state: what a count reads, and what tells a list which
-- ranges are worth a look.

CREATE TABLE job_count (
    tenant TEXT NOT NULL,
    state INTEGER NOT NULL,
    n INTEGER NOT NULL,
    PRIMARY KEY (tenant, state)
) STRICT, WITHOUT ROWID;

INSERT INTO job_count (tenant, state, n) SELECT tenant, state, count(*) FROM job GROUP BY tenant, state;

CREATE TRIGGER job_added AFTER INSERT ON job
BEGIN
    INSERT INTO job_count (tenant, state, n) VALUES (new.tenant, new.state, 1)
        ON CONFLICT (tenant, state) DO UPDATE SET n = n + 1;
END;

CREATE TRIGGER job_moved AFTER UPDATE OF state ON job WHEN old.state <> new.state
BEGIN
    UPDATE job_count SET n = n - 1 WHERE tenant = old.tenant AND state = old.state;
    INSERT INTO job_count (tenant, state, n) VALUES (new.tenant, new.state, 1)
        ON CONFLICT (tenant, state) DO UPDATE SET n = n + 1;
END;
