-- Version 2 of the schema.

-- A waiter finds its place by its owner.
create unique index waiter_owner on leasehold.waiter (name, owner);

-- When the client of a waiter last asked for it.
alter table leasehold.waiter add column heard timestamptz not null default clock_timestamp();

-- These have further parameters now.
drop function if exists leasehold.acquire(text, text, text, integer, bigint, bigint, boolean, boolean);
drop function if exists leasehold.acquire_other(text, text, text, integer, bigint, bigint, boolean, boolean);
drop function if exists leasehold.acquire_crowded(text, text, text, integer, bigint, bigint, boolean, boolean);
drop function if exists leasehold.enqueue(leasehold.lock, text, text, integer, bigint, bigint, bigint);
