-- Nothing yet: this step's number is another's.
SELECT 1;
