-- Frees what an owner has of a lock: the lease, or the place in the queue. Passes the lock on.
--
-- p_settled: all requests of the owner were answered. Otherwise one may arrive late, and must find that it is over.
-- Returns 0 if the owner held the lock, otherwise 1.
create or replace function leasehold.release(p_name text, p_owner text, p_settled boolean)
returns integer language plpgsql as $$
begin
    if p_settled then
        -- Waits for a transaction of the holder that called leasehold.holds(), and voids later ones.
        perform from leasehold.lock x
        where x.name = p_name and x.owner = p_owner and not x.crowded and not x.broken and x.until > clock_timestamp()
        for update;
        if found then
            update leasehold.lock x set owner = null, client = null where x.name = p_name;
            return 0;
        end if;
    end if;
    return leasehold.release_crowded(p_name, p_owner, p_settled);
end $$;

-- The same for a lock that may have other holders, or waiters.
create or replace function leasehold.release_crowded(p_name text, p_owner text, p_settled boolean)
returns integer language plpgsql as $$
declare
    l leasehold.lock := leasehold.lock_row(p_name);
    v_result integer := 1;
    v_until timestamptz;
begin
    if l.owner = p_owner and not l.broken then
        perform from leasehold.lock x where x.name = p_name for update;
        update leasehold.lock x set owner = null, client = null where x.name = p_name;
        v_result := case when l.until > clock_timestamp() then 0 else 1 end;
    end if;
    if l.crowded then
        delete from leasehold.sharer s where s.name = p_name and s.owner = p_owner returning s.until into v_until;
        if v_until > clock_timestamp() then
            v_result := 0;
        end if;
        delete from leasehold.waiter w where w.name = p_name and w.owner = p_owner;
        delete from leasehold.ended e where e.name = p_name and e.until <= clock_timestamp();
    end if;
    if not p_settled then
        perform leasehold.remember_end(p_name, p_owner, false, clock_timestamp());
    end if;
    if l.crowded then
        perform leasehold.wake(p_name);
    end if;
    update leasehold.lock x set crowded = not x.crowded
    where x.name = p_name and x.crowded <> leasehold.is_crowded(p_name);
    return v_result;
end $$;

-- Remembers that an owner is over, for ten minutes after `p_from`. Later requests of the owner would be harmless: the
-- lock would be held until the end of one lease.
create or replace function leasehold.remember_end(p_name text, p_owner text, p_broken boolean, p_from timestamptz)
returns void language sql volatile as $$
    insert into leasehold.ended as e (name, owner, broken, until)
    values (p_name, p_owner, p_broken, p_from + interval '10 minutes')
    on conflict (name, owner) do update set broken = e.broken or excluded.broken, until = greatest(e.until, excluded.until)
$$;
