-- A checksum of each row that a start is made from, so that a bit that fell over on the disk is noticed: ns_sum (sum.c)
-- of the row's other columns, as the statements that write them say.  0: the row is from before there were any.

ALTER TABLE job ADD COLUMN sum INTEGER NOT NULL DEFAULT 0;
ALTER TABLE job_spec ADD COLUMN sum INTEGER NOT NULL DEFAULT 0;
ALTER TABLE journal ADD COLUMN sum INTEGER NOT NULL DEFAULT 0;
ALTER TABLE account ADD COLUMN sum INTEGER NOT NULL DEFAULT 0;
ALTER TABLE directory ADD COLUMN sum INTEGER NOT NULL DEFAULT 0;
ALTER TABLE pool ADD COLUMN sum INTEGER NOT NULL DEFAULT 0;
