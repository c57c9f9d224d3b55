-- Returns whether this fence still holds the lock, and keeps it so until the caller's transaction ends: another client
-- gets the lock only afterwards, even if the lease ends before. The holder can be renewed meanwhile.
--
-- Call it in the transaction of the work, before its commit. In a transaction that is repeatable read or serializable,
-- it fails with 40001 instead if the lock was released since the transaction began.
--
-- It runs in a session of its caller, whose search path may name any schema first.
create or replace function leasehold.holds(p_name text, p_fence bigint) returns boolean language plpgsql
set search_path = pg_catalog, pg_temp as $$
begin
    perform from leasehold.lock x
    where x.name = p_name and x.fence = p_fence and x.owner is not null and not x.broken
        and x.until > clock_timestamp()
    for key share;
    if not found then
        perform from leasehold.sharer s
        where s.name = p_name and s.fence = p_fence and not s.broken and s.until > clock_timestamp()
        for key share;
    end if;
    return found;
end $$;
