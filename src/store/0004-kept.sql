-- What is kept of jobs that have ended: their output, found by the age of their end, and their rows.

CREATE TABLE job_log (
    job INTEGER PRIMARY KEY,
    ended_ms INTEGER NOT NULL,   -- of the job
    bytes INTEGER NOT NULL,      -- on the disk, of all its runs and replicas; -1: not measured yet
    removed_ms INTEGER NOT NULL, -- 0: it is there
    why INTEGER NOT NULL         -- it was removed: enum store_log_why
) STRICT;

CREATE INDEX job_log_kept ON job_log (ended_ms, job) WHERE removed_ms = 0;
CREATE INDEX job_log_new ON job_log (job) WHERE bytes < 0;
CREATE INDEX job_by_age ON job (state_ms, id) WHERE state >= 9;

CREATE TABLE log_sum (
    one INTEGER PRIMARY KEY,
    logs INTEGER NOT NULL,
    bytes INTEGER NOT NULL
) STRICT;

INSERT INTO log_sum (one, logs, bytes) VALUES (1, 0, 0);

CREATE TRIGGER log_added AFTER INSERT ON job_log
BEGIN
    UPDATE log_sum SET logs = logs + (new.removed_ms = 0), bytes = bytes + max(new.bytes, 0);
END;

CREATE TRIGGER log_changed AFTER UPDATE ON job_log
BEGIN
    UPDATE log_sum SET logs = logs + (new.removed_ms = 0) - (old.removed_ms = 0),
        bytes = bytes + max(new.bytes, 0) - max(old.bytes, 0);
END;

CREATE TRIGGER log_removed AFTER DELETE ON job_log
BEGIN
    UPDATE log_sum SET logs = logs - (old.removed_ms = 0), bytes = bytes - max(old.bytes, 0);
END;

INSERT INTO job_log (job, ended_ms, bytes, removed_ms, why)
SELECT id, state_ms, -1, 0, 0 FROM job WHERE state >= 9 AND run > 0;

CREATE TRIGGER job_ended AFTER UPDATE OF state ON job WHEN old.state < 9 AND new.state >= 9 AND new.run > 0
BEGIN
    INSERT INTO job_log (job, ended_ms, bytes, removed_ms, why) VALUES (new.id, new.state_ms, -1, 0, 0);
END;

CREATE TRIGGER job_removed AFTER DELETE ON job
BEGIN
    UPDATE job_count SET n = n - 1 WHERE tenant = old.tenant AND state = old.state;
    DELETE FROM job_spec WHERE job = old.id;
    DELETE FROM job_log WHERE job = old.id;
    DELETE FROM run WHERE job = old.id;
END;
