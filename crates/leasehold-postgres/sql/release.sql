-- Frees what an owner has of a lock: the lease, or the place in the queue. Passes the lock on.
--
-- p_client: the client that asks. p_settled: all requests of the owner were answered. Otherwise one may arrive late, and must
-- find that it is over. Returns 'released' if the owner held the lock, otherwise 'lost', and then the grants to waiters of
-- the same client: ' OWNER FENCE' for each.
create or replace function leasehold.release(p_name text, p_owner text, p_client text, p_settled boolean)
returns text language plpgsql as $$
declare
    l leasehold.lock;
    w leasehold.waiter;
    v_setting text;
begin
    if p_settled then
        -- Waits for a transaction of the holder that called leasehold.holds(), and voids later ones.
        select * into l from leasehold.lock x
        where x.name = p_name and x.owner = p_owner and not x.broken and x.until > clock_timestamp()
        for update;
        if found and l.crowded then
            -- Usually an exclusive waiter is first. While the lock has an exclusive owner, it has no sharers.
            select * into w from leasehold.waiter x where x.name = p_name order by x.ticket limit 1;
            if w.mode = 0 and (w.until > clock_timestamp() or left(w.owner, 16) = p_client) then
                l.fence := leasehold.next_fence(l.fence, w.proposal);
                return 'released' || leasehold.pass_to(l, w, p_client);
            end if;
            l.owner := null;
            return 'released' || leasehold.pass_on(l, p_client);
        end if;
        if l.name is not null then
            update leasehold.lock x set owner = null, client = null where x.name = p_name;
            -- A crash of the server may undo this. The lock is then closed until the end of the lease that it had. An
            -- earlier grant to another owner waits for the disk, and so for this release, too.
            if current_setting('leasehold_client.durable_releases', true) is distinct from 'on' then
                v_setting := set_config('synchronous_commit', 'off', true);
            end if;
            return 'released';
        end if;
    end if;
    return leasehold.release_other(p_name, p_owner, p_client, p_settled);
end $$;

-- The same for an owner that shares the lock, or waits, or is gone, or may have a late request.
create or replace function leasehold.release_other(p_name text, p_owner text, p_client text, p_settled boolean)
returns text language plpgsql as $$
declare
    l leasehold.lock := leasehold.lock_row(p_name);
    v_held boolean := false;
begin
    -- The owner of a broken lease says that it has ended.
    if l.owner = p_owner or l.crowded then
        v_held := leasehold.end_lease(p_name, p_owner);
        l.owner := nullif(l.owner, p_owner);
    end if;
    if l.crowded then
        delete from leasehold.waiter w where w.name = p_name and w.owner = p_owner;
        delete from leasehold.ended e where e.name = p_name and e.until <= clock_timestamp();
    end if;
    if not p_settled then
        perform leasehold.remember_end(p_name, p_owner, false, clock_timestamp());
    end if;
    return case when v_held then 'released' else 'lost' end || leasehold.pass_on(l, p_client);
end $$;

-- Remembers that an owner is over, for ten minutes after `p_from`. Later requests of the owner would be harmless: the
-- lock would be held until the end of one lease.
create or replace function leasehold.remember_end(p_name text, p_owner text, p_broken boolean, p_from timestamptz)
returns void language sql volatile as $$
    insert into leasehold.ended as e (name, owner, broken, until)
    values (p_name, p_owner, p_broken, p_from + interval '10 minutes')
    on conflict (name, owner) do update set broken = e.broken or excluded.broken, until = greatest(e.until, excluded.until)
$$;
