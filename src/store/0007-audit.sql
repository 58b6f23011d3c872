-- Who did what, as a chain: hash is BLAKE2b-256 over the hash before and the row (docs/ops/audit.md).
-- meta has 'audit_head', the last row that was written, and 'audit_cut', the last that was removed:
-- number and hash of each.

CREATE TABLE audit (
    number INTEGER PRIMARY KEY,
    t_ms INTEGER NOT NULL,
    who TEXT NOT NULL,
    via TEXT NOT NULL,
    address TEXT NOT NULL,
    what TEXT NOT NULL,
    subject TEXT NOT NULL,
    tenant TEXT NOT NULL,
    before TEXT NOT NULL,
    after TEXT NOT NULL,
    reason TEXT NOT NULL,
    hash BLOB NOT NULL
) STRICT;

CREATE INDEX audit_by_who ON audit (who, number);
CREATE INDEX audit_by_subject ON audit (subject, number);
CREATE INDEX audit_by_tenant ON audit (tenant, number);

-- Against a slip; whoever can write the file can drop them, and is found by the chain.
CREATE TRIGGER audit_grows BEFORE INSERT ON audit
WHEN NEW.number <= (SELECT max(number) FROM audit)
BEGIN
    SELECT raise(ABORT, 'the audit only grows');
END;

CREATE TRIGGER audit_stays BEFORE UPDATE ON audit
BEGIN
    SELECT raise(ABORT, 'the audit is not changed');
END;

CREATE TRIGGER audit_goes BEFORE DELETE ON audit
WHEN OLD.number > coalesce((SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'audit_cut'), 0)
BEGIN
    SELECT raise(ABORT, 'the audit is cut by keep_audit only');
END;
