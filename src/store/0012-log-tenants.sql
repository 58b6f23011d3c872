-- Whose output it is: when all of it together is too large, whoever has most lets go first.

ALTER TABLE job_log ADD COLUMN tenant TEXT NOT NULL DEFAULT '';
UPDATE job_log SET tenant = coalesce((SELECT tenant FROM job WHERE id = job_log.job), '');
CREATE INDEX job_log_tenant ON job_log (tenant, ended_ms, job) WHERE removed_ms = 0;

CREATE TABLE log_tenant (
    tenant TEXT PRIMARY KEY,
    bytes INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

INSERT INTO log_tenant (tenant, bytes) SELECT tenant, sum(max(bytes, 0)) FROM job_log GROUP BY tenant;

CREATE TRIGGER log_tenant_added AFTER INSERT ON job_log
BEGIN
    INSERT INTO log_tenant (tenant, bytes) VALUES (new.tenant, max(new.bytes, 0))
        ON CONFLICT (tenant) DO UPDATE SET bytes = bytes + excluded.bytes;
END;

CREATE TRIGGER log_tenant_changed AFTER UPDATE OF bytes ON job_log
BEGIN
    UPDATE log_tenant SET bytes = bytes + max(new.bytes, 0) - max(old.bytes, 0) WHERE tenant = new.tenant;
END;

CREATE TRIGGER log_tenant_removed AFTER DELETE ON job_log
BEGIN
    UPDATE log_tenant SET bytes = bytes - max(old.bytes, 0) WHERE tenant = old.tenant;
END;

DROP TRIGGER job_ended;
CREATE TRIGGER job_ended AFTER UPDATE OF state ON job WHEN old.state < 9 AND new.state >= 9 AND new.run > 0
BEGIN
    INSERT INTO job_log (job, ended_ms, bytes, removed_ms, why, tenant)
        VALUES (new.id, new.state_ms, -1, 0, 0, new.tenant);
END;
