-- What people said with the API about tenants, people and their keys: small documents that the daemon has
-- all in memory.  What they mean is the caller's.

CREATE TABLE directory (
    kind TEXT NOT NULL,
    name TEXT NOT NULL,
    body TEXT NOT NULL, -- JSON
    PRIMARY KEY (kind, name)
) STRICT, WITHOUT ROWID;

-- A token had a role; now it has its user's roles, as far as its scopes reach.  Whoever had an administrator's
-- token is an administrator; a member's token stays one, also of somebody who is an administrator otherwise.
INSERT INTO directory (kind, name, body)
SELECT 'token', lower(hex(hash)), json_object('name', name, 'user', user,
    'scopes', CASE WHEN role >= 3 THEN 'read,jobs,manage' ELSE 'read,jobs' END,
    'tenants_only', json(CASE WHEN role >= 3 THEN 'false' ELSE 'true' END), 'created_ms', created_ms, 'expires_ms', expires_ms)
FROM token;

INSERT INTO directory (kind, name, body)
SELECT DISTINCT 'person', user, json_object('role', 'admin', 'kind', 'machine') FROM token WHERE role >= 3;

DROP TABLE token;

ALTER TABLE pool ADD COLUMN stage TEXT NOT NULL DEFAULT 'all'; -- whose machines they are while they are rolled out
