-- Version 3 of the schema.

-- An operator broke the lease. The owner counts until its end.
alter table leasehold.sharer add column broken boolean not null default false;

create or replace view leasehold.holder as
    select name, 0 as mode, owner, fence, client, since, until, broken
    from leasehold.lock
    where owner is not null and until > clock_timestamp()
    union all
    select name, mode, owner, fence, client, since, until, broken
    from leasehold.sharer
    where until > clock_timestamp();
