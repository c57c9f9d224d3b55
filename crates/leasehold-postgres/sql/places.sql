-- Keeps places in queues for four seconds. A client calls it each second for all its waiters.
--
-- Returns ' NUMBER MICROSECONDS' for each waiter that should ask, and when: it has the lock, or it is the first and the lock may
-- be free. MICROSECONDS is -1 if its place is gone. NUMBER is the index in the arrays, from 1. The function waits for no row.
create or replace function leasehold.keep_places(p_names text[], p_owners text[]) returns text language plpgsql as $$
declare
    v_now timestamptz := clock_timestamp();
    v_heard timestamptz;
    v_kept bigint;
    v_asks text;
    v_setting text;
begin
    -- A crash of the server costs no more than places that are taken again.
    v_setting := set_config('synchronous_commit', 'off', true);
    with kept as (
        select w.name, w.ticket, w.heard
        from unnest(p_names, p_owners) p (name, owner)
        join leasehold.waiter w on w.name = p.name and w.owner = p.owner
        for update of w skip locked
    ), renewed as (
        update leasehold.waiter w set until = v_now + interval '4 seconds', heard = v_now
        from kept k where w.name = k.name and w.ticket = k.ticket
    )
    select min(k.heard), count(*) into v_heard, v_kept from kept k;
    perform leasehold.keep_after_silence(v_heard);
    select string_agg(' ' || p.number::text || ' ' || r.micros::text, '') into v_asks
    from (select distinct q.name from pg_catalog.unnest(p_names) q (name)) q
    cross join lateral (
        select w.owner from leasehold.waiter w
        where w.name = q.name and w.until > v_now order by w.ticket limit 1) f
    join unnest(p_names, p_owners) with ordinality p (name, owner, number) on p.name = q.name and p.owner = f.owner
    cross join lateral leasehold.rest(p.name) r (micros)
    where r.micros <= 1000000;
    if v_kept < pg_catalog.cardinality(p_owners) then
        -- A row may also have been in use.
        select coalesce(v_asks, '') || coalesce(string_agg(' ' || p.number::text || ' ' || case when exists (
            select from leasehold.holder h where h.name = p.name and h.owner = p.owner
        ) then '0' else '-1' end, ''), '') into v_asks
        from unnest(p_names, p_owners) with ordinality p (name, owner, number)
        where not exists (select from leasehold.waiter w where w.name = p.name and w.owner = p.owner);
    end if;
    return coalesce(v_asks, '');
end $$;

-- Returns how long it is at most until the first waiter of a lock may get it, in microseconds.
create or replace function leasehold.rest(p_name text) returns bigint language plpgsql as $$
declare
    v_until timestamptz;
begin
    select l.until into v_until from leasehold.lock l where l.name = p_name and l.owner is not null;
    if not found then
        select min(s.until) into v_until from leasehold.sharer s where s.name = p_name;
    end if;
    return leasehold.micros(v_until);
end $$;

-- Keeps the places of all clients after the server did not hear one client for two seconds. If the server was stopped, it heard
-- no client. Then each client has four more seconds. A client that ended before that has not.
create or replace function leasehold.keep_after_silence(p_heard timestamptz) returns void language plpgsql as $$
declare
    v_now timestamptz := clock_timestamp();
begin
    if p_heard < v_now - interval '2 seconds' then
        with silent as (
            select x.name, x.ticket from leasehold.waiter x
            where x.heard >= p_heard - interval '2 seconds' and x.until < v_now + interval '2 seconds'
            for update skip locked
        )
        update leasehold.waiter w set until = v_now + interval '4 seconds'
        from silent s where w.name = s.name and w.ticket = s.ticket;
    end if;
end $$;
