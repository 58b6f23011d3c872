-- What happened to each job, from submit to end: see life.h.  It goes with the job's row.

CREATE TABLE job_step (
    job INTEGER NOT NULL,
    number INTEGER NOT NULL, -- 1, 2, … of each job
    t_ms INTEGER NOT NULL,
    what TEXT NOT NULL,
    state INTEGER NOT NULL,  -- that it was in then
    run INTEGER NOT NULL,
    reason TEXT NOT NULL,    -- why it waits, as a slug; '': it does not, or no pass has looked yet
    who TEXT NOT NULL,       -- asked for it; '': nobody did
    note TEXT NOT NULL,      -- a sentence for its user
    place TEXT NOT NULL,     -- as in job, of a run that begins
    exit_code INTEGER NOT NULL,
    exit_signal INTEGER NOT NULL,
    PRIMARY KEY (job, number)
) STRICT, WITHOUT ROWID;

CREATE TRIGGER steps_removed AFTER DELETE ON job
BEGIN
    DELETE FROM job_step WHERE job = old.id;
END;

-- Of jobs from before, what the last public events tell of them.  How a start went was told again and again.
INSERT INTO job_step (job, number, t_ms, what, state, run, reason, who, note, place, exit_code, exit_signal)
SELECT job, row_number() OVER (PARTITION BY job ORDER BY number), t_ms,
    CASE WHEN state = 'queued' AND run > 0 THEN 'requeued' WHEN state = 'starting' THEN 'placed' WHEN state = 'running' THEN 'started'
        WHEN state IN ('succeeded', 'failed', 'cancelled') THEN 'ended' ELSE state END,
    CASE state WHEN 'held' THEN 0 WHEN 'queued' THEN 1 WHEN 'starting' THEN 2 WHEN 'running' THEN 3 WHEN 'freezing' THEN 4
        WHEN 'paused' THEN 5 WHEN 'frozen' THEN 6 WHEN 'thawing' THEN 7 WHEN 'stopping' THEN 8 WHEN 'succeeded' THEN 9
        WHEN 'failed' THEN 10 ELSE 11 END,
    run, '', '', note, '', exit_code, exit_signal
FROM (
    SELECT job, number, t_ms, state, run, note, exit_code, exit_signal,
        lag(state || run, 1, '') OVER (PARTITION BY job ORDER BY number) AS before
    FROM (
        SELECT e.job, e.number, e.t_ms, json_extract(body, '$.state') AS state,
            coalesce(json_extract(body, '$.run'), 0) AS run, coalesce(json_extract(body, '$.message'), '') AS note,
            coalesce(json_extract(body, '$.exit_code'), 0) AS exit_code,
            coalesce(json_extract(body, '$.exit_signal'), 0) AS exit_signal
        FROM event AS e JOIN job ON job.id = e.job WHERE e.kind = 'job')
    WHERE state IS NOT NULL)
WHERE before <> state || run;
