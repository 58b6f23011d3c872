-- What people are to be told by mail or webhook, and how that went: see src/notice.

CREATE TABLE notice (
    id TEXT PRIMARY KEY,       -- as receivers see it: the same at every try
    user TEXT NOT NULL,
    way INTEGER NOT NULL,      -- enum notice_way
    event INTEGER NOT NULL,    -- enum notice_event
    state INTEGER NOT NULL,    -- enum store_notice_state; 0: it waits
    made_ms INTEGER NOT NULL,
    due_ms INTEGER NOT NULL,   -- not before; when it is over: since when it is
    tries INTEGER NOT NULL,
    subject TEXT NOT NULL,
    data TEXT NOT NULL,        -- JSON; empty when it is over
    why TEXT NOT NULL          -- of the last try that failed
) STRICT, WITHOUT ROWID;

CREATE INDEX notice_waiting ON notice (made_ms, id) WHERE state = 0;
CREATE INDEX notice_by_user ON notice (user, made_ms, id);
