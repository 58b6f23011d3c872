-- What was used, summed a day at a time when a run ends, so that usage costs days and not runs.  A day is
-- 86,400,000 ms from 1970 on; a run is cut at midnights.

UPDATE run SET ended_ms = started_ms WHERE ended_ms > 0 AND ended_ms < started_ms;

CREATE TABLE usage_day (
    day INTEGER NOT NULL,
    tenant TEXT NOT NULL,
    user TEXT NOT NULL,
    model TEXT NOT NULL,
    gpu_milli_ms INTEGER NOT NULL,
    cpu_milli_ms INTEGER NOT NULL,
    starts INTEGER NOT NULL,  -- runs that began in it
    carried INTEGER NOT NULL, -- runs that began before it and went on in it
    PRIMARY KEY (day, tenant, user, model)
) STRICT, WITHOUT ROWID;

-- The runs that were carried into a day: with those that began in it, all that a part of it is counted from.
CREATE TABLE run_carried (
    day INTEGER NOT NULL,
    job INTEGER NOT NULL,
    run INTEGER NOT NULL,
    PRIMARY KEY (day, job, run)
) STRICT, WITHOUT ROWID;

INSERT INTO run_carried (day, job, run)
WITH RECURSIVE part (day, job, run, ended_ms) AS (
    SELECT started_ms / 86400000 + 1, job, run, ended_ms FROM run
    WHERE ended_ms > (started_ms / 86400000 + 1) * 86400000
    UNION ALL
    SELECT day + 1, job, run, ended_ms FROM part WHERE ended_ms > (day + 1) * 86400000)
SELECT day, job, run FROM part ORDER BY day, job, run;

INSERT INTO usage_day (day, tenant, user, model, gpu_milli_ms, cpu_milli_ms, starts, carried)
SELECT day, tenant, user, model,
    sum(gpu_milli * (min(ended_ms, day * 86400000 + 86400000) - max(started_ms, day * 86400000))),
    sum(cpu_milli * (min(ended_ms, day * 86400000 + 86400000) - max(started_ms, day * 86400000))),
    sum(started_ms >= day * 86400000), sum(started_ms < day * 86400000)
FROM (
    SELECT started_ms / 86400000 AS day, tenant, user, model, gpu_milli, cpu_milli, started_ms, ended_ms
    FROM run WHERE ended_ms > 0
    UNION ALL
    SELECT day, tenant, user, model, gpu_milli, cpu_milli, started_ms, ended_ms
    FROM run_carried JOIN run USING (job, run))
GROUP BY day, tenant, user, model;

DROP INDEX run_by_end;
CREATE INDEX run_by_start ON run (started_ms, ended_ms, tenant, user, model, gpu_milli, cpu_milli);
CREATE INDEX run_living ON run (started_ms) WHERE ended_ms = 0;
