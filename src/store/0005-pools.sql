-- Machines that are lent at the same times, as people said it with the API.

CREATE TABLE pool (
    name TEXT PRIMARY KEY,
    calendar TEXT NOT NULL,      -- '': always open
    nodes TEXT NOT NULL,         -- as a hostlist
    exceptions TEXT NOT NULL,    -- a calendar of exceptions alone, in UTC; '': none
    of_settings INTEGER NOT NULL -- 1: the settings file has its calendar and nodes; here are exceptions
) STRICT, WITHOUT ROWID;
