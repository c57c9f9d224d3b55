-- Version 4 of the schema: a release that leaves its lock free does not wait for the disk. Only functions changed.

-- This function returns a text now.
drop function if exists leasehold.enqueue(leasehold.lock, text, text, integer, bigint, bigint, bigint, bigint);
