-- Passes on a lock, and writes its row `l`. If the lock had an owner that ends, the caller has locked the row `for update` and
-- set the owner in `l` to null.
--
-- The lock passes to the first waiter, and to those behind it that share. Returns the grants to waiters of `p_client`, the
-- client that asks: ' OWNER FENCE' for each.
create or replace function leasehold.pass_on(l leasehold.lock, p_client text) returns text language plpgsql as $$
declare
    v_held record;
    w leasehold.waiter;
    v_differs boolean;
    v_heard timestamptz;
    v_grants text := '';
begin
    if l.owner is not null then
        update leasehold.lock x set crowded = not x.crowded
        where x.name = l.name and x.crowded <> leasehold.is_crowded(l.name);
        return v_grants;
    end if;
    -- Also those whose lease is over: they may have a transaction that called leasehold.holds().
    select count(*) as number, max(s.mode) as mode, coalesce(bool_or(s.until <= clock_timestamp()), false) as any_over
    into v_held from leasehold.sharer s where s.name = l.name;
    for w in select * from leasehold.waiter x where x.name = l.name order by x.ticket loop
        if w.until <= clock_timestamp() and left(w.owner, 16) is distinct from p_client then
            -- If the server heard no other waiter since, it may have been stopped, and this waiter may ask in a moment.
            v_heard := coalesce(v_heard, (
                select max(x.heard) from leasehold.waiter x
                where x.name = l.name and x.until > clock_timestamp()
            ), '-infinity');
            if v_heard > w.heard + interval '2 seconds' or w.until < clock_timestamp() - interval '1 minute' then
                delete from leasehold.waiter x where x.name = w.name and x.ticket = w.ticket;
                continue;
            end if;
        end if;
        if not leasehold.admits(w.mode, v_held.number, v_held.mode) then
            v_differs := w.mode > 0 and v_held.mode > 0 and w.mode <> v_held.mode;
            if v_differs or v_held.any_over then
                -- It asks, and learns that it waits in vain, or waits for such a transaction.
                perform leasehold.notify(w.owner);
            end if;
            exit when not v_differs;
            continue;
        end if;
        l.fence := leasehold.next_fence(l.fence, w.proposal);
        v_grants := v_grants || leasehold.pass_to(l, w, p_client);
        if w.mode = 0 then
            return v_grants;
        end if;
        v_held.number := v_held.number + 1;
        v_held.mode := w.mode;
    end loop;
    update leasehold.lock x
    set fence = l.fence, owner = null, client = null, broken = false, crowded = leasehold.is_crowded(l.name)
    where x.name = l.name;
    return v_grants;
end $$;

-- Passes a lock to one waiter, with the fence in `l`. The row of the lock names it if it is exclusive.
--
-- A waiter of `p_client` has its whole lease from now on, and the answer grants it. A waiter of another client may be dead. The
-- server reserves the lock for it for four seconds, and notifies it, so that it asks.
create or replace function leasehold.pass_to(l leasehold.lock, w leasehold.waiter, p_client text)
returns text language plpgsql as $$
declare
    v_until timestamptz := clock_timestamp() + interval '4 seconds';
    v_grant text := '';
begin
    if left(w.owner, 16) = p_client then
        v_until := clock_timestamp() + w.ttl::float8 * interval '1 microsecond';
        v_grant := ' ' || w.owner || ' ' || l.fence::text;
    else
        perform leasehold.notify(w.owner);
    end if;
    delete from leasehold.waiter x where x.name = w.name and x.ticket = w.ticket;
    if w.mode = 0 then
        update leasehold.lock x
        set fence = l.fence, owner = w.owner, client = w.client, since = w.proposal, until = v_until, broken = false,
            crowded = exists (select from leasehold.waiter y where y.name = l.name) or leasehold.is_crowded(l.name)
        where x.name = l.name;
    else
        insert into leasehold.sharer (name, owner, mode, fence, client, since, until)
        values (l.name, w.owner, w.mode, l.fence, w.client, w.proposal, v_until);
    end if;
    return v_grant;
end $$;

-- The fence of a waiter: greater than the last one, than its clock at its last request, and than the server's clock.
create or replace function leasehold.next_fence(p_last bigint, p_proposal bigint)
returns bigint language sql volatile as $$
    select greatest(p_last, p_proposal, (extract(epoch from clock_timestamp()) * 1000000::numeric)::bigint) + 1
$$;

-- Notifies the client of an owner.
create or replace function leasehold.notify(p_owner text) returns void language sql volatile as $$
    select pg_notify('leasehold_' || left(p_owner, 16), p_owner)
$$;
