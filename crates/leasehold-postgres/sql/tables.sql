-- Version 1 of the schema. `leasehold init` runs it in a transaction.
--
-- All times are of the server's clock, read by clock_timestamp(): now() is when the transaction began, perhaps before
-- it waited for a row. Spans are microseconds. A mode is 0 (exclusive), -1 (shared), or a number of permits.

-- A row for each lock that was ever used. It stays, with the greatest fence, until the sweep.
create table leasehold.lock (
    name text collate "C" primary key,
    -- The greatest fence that was granted. If there is an owner, it is the owner's.
    fence bigint not null,
    -- The exclusive holder. A row changes its owner only after `for update`, for which leasehold.holds() matters.
    owner text,
    -- The holder's client, as JSON.
    client text,
    -- The time of the grant by the clock of the client, in microseconds since 1970.
    since bigint,
    -- When the lease ends.
    until timestamptz,
    -- An operator broke the lease. The owner keeps others out until the end of the lease.
    broken boolean not null default false,
    -- Whether the tables sharer, waiter and ended may have rows of this lock. Otherwise no function looks there.
    crowded boolean not null default false
) with (fillfactor = 50);

-- The holders that share a lock or have one of its permits.
create table leasehold.sharer (
    name text collate "C",
    owner text,
    mode integer not null,
    fence bigint not null,
    client text,
    since bigint not null,
    until timestamptz not null,
    primary key (name, owner)
) with (fillfactor = 50);

-- The queues. Smaller tickets come first.
create table leasehold.waiter (
    name text collate "C",
    -- When the wait began, in microseconds since 1970, and later than all that already waited.
    ticket bigint,
    owner text not null,
    mode integer not null,
    client text,
    ttl bigint not null,
    -- The clock of the client at its last request, in microseconds since 1970.
    proposal bigint not null,
    -- Until when the place is kept, unless the waiter asks again.
    until timestamptz not null,
    primary key (name, ticket)
) with (fillfactor = 50);

-- Owners that were released or broken. A request of theirs that arrives late finds that it is over.
create table leasehold.ended (
    name text collate "C",
    owner text,
    broken boolean not null,
    until timestamptz not null,
    primary key (name, owner)
);

-- The last break of each lock.
create table leasehold.break (
    name text collate "C" primary key,
    owner text not null,
    -- The record of the break, as JSON.
    record text not null,
    until timestamptz not null
);

-- Values next to locks, which only the greatest fence can write.
create table leasehold.record (
    name text collate "C" primary key,
    -- The greatest version that opened or wrote the record, and until when it is remembered.
    seen_fence bigint not null,
    seen_step bigint not null,
    seen_until timestamptz not null,
    -- The value, and the version that wrote it; null if there is none.
    fence bigint,
    step bigint,
    value bytea,
    until timestamptz
);

-- What people and monitoring may read: the holders of all locks.
create view leasehold.holder as
    select name, 0 as mode, owner, fence, client, since, until, broken
    from leasehold.lock
    where owner is not null and until > clock_timestamp()
    union all
    select name, mode, owner, fence, client, since, until, false
    from leasehold.sharer
    where until > clock_timestamp();
