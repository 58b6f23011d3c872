-- Checksums also of what no start is made from: see 0011-sums.sql.  meta's rows of the audit have none: its chain is theirs.

ALTER TABLE run ADD COLUMN sum INTEGER NOT NULL DEFAULT 0;
ALTER TABLE run_carried ADD COLUMN sum INTEGER NOT NULL DEFAULT 0;
ALTER TABLE usage_day ADD COLUMN sum INTEGER NOT NULL DEFAULT 0;
ALTER TABLE ledger_day ADD COLUMN sum INTEGER NOT NULL DEFAULT 0;
ALTER TABLE machines_day ADD COLUMN sum INTEGER NOT NULL DEFAULT 0;
ALTER TABLE event ADD COLUMN sum INTEGER NOT NULL DEFAULT 0;
ALTER TABLE job_step ADD COLUMN sum INTEGER NOT NULL DEFAULT 0;
ALTER TABLE job_log ADD COLUMN sum INTEGER NOT NULL DEFAULT 0;
ALTER TABLE notice ADD COLUMN sum INTEGER NOT NULL DEFAULT 0;
ALTER TABLE answer ADD COLUMN sum INTEGER NOT NULL DEFAULT 0;
ALTER TABLE meta ADD COLUMN sum INTEGER NOT NULL DEFAULT 0;

-- How many lines a segment begins with, that make anew what the one before it ends with; 0: nobody knows, or the clock was set there.
ALTER TABLE journal_segment ADD COLUMN begins INTEGER NOT NULL DEFAULT 0;
ALTER TABLE journal_segment ADD COLUMN lines_before INTEGER NOT NULL DEFAULT 0; -- of that one
ALTER TABLE journal_segment ADD COLUMN sum INTEGER NOT NULL DEFAULT 0;
