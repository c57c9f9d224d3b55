-- Takes a lock, or a place in its queue. One call is one attempt.
--
-- p_waits: queue if the lock is busy. p_barges: go ahead of the queue, without a place. p_ticket: the ticket of the place that
-- the owner had, which it gets again. Returns one of
--   granted FENCE
--   busy HOLDER REMAINING POSITION TICKET   the owner that holds, and for how many microseconds; the place in the queue; or -
--   permits NUMBER                          the lock is in use with this other number of permits
-- A text is cheaper than a row, which the server would keep in a table of its own.
--
-- An assignment of a function's value is cheaper than `perform` and `select into`, for which the server runs a query.
--
-- In all functions, each operator, function and cast matches one of pg_catalog exactly. Otherwise the search path could offer a
-- better match, which belongs to another user. A fixed search path for each function would cost more than the function itself.
create or replace function leasehold.acquire(
    p_name text, p_owner text, p_client text, p_mode integer, p_ttl bigint, p_proposal bigint,
    p_waits boolean, p_barges boolean, p_ticket bigint default null
) returns text language plpgsql as $$
declare
    v_fence bigint;
begin
    if p_mode = 0 then
        -- The usual case: the lock is free, and it has no waiters. A row without an owner needs no `for update`.
        update leasehold.lock x
        set fence = greatest(x.fence, p_proposal) + 1, owner = p_owner, client = p_client, since = p_proposal,
            until = clock_timestamp() + p_ttl::float8 * interval '1 microsecond'
        where x.name = p_name and x.owner is null and not x.crowded
        returning x.fence into v_fence;
        if found then
            return 'granted ' || v_fence::text;
        end if;
    end if;
    return leasehold.acquire_other(p_name, p_owner, p_client, p_mode, p_ttl, p_proposal, p_waits, p_barges, p_ticket);
end $$;

-- The same for a lock that is new, or held, or crowded.
create or replace function leasehold.acquire_other(
    p_name text, p_owner text, p_client text, p_mode integer, p_ttl bigint, p_proposal bigint,
    p_waits boolean, p_barges boolean, p_ticket bigint default null
) returns text language plpgsql as $$
declare
    l leasehold.lock;
    v_fence bigint;
begin
    -- A look without a lock: most attempts that fail need no more.
    select * into l from leasehold.lock x where x.name = p_name;
    if not found then
        insert into leasehold.lock as x (name, fence, owner, client, since, until)
        values (p_name, case p_mode when 0 then p_proposal + 1 else 0 end,
            case p_mode when 0 then p_owner end, p_client, p_proposal,
            clock_timestamp() + p_ttl::float8 * interval '1 microsecond')
        on conflict do nothing
        returning x.fence into v_fence;
        if found and random() < '0.05'::float8 then
            perform leasehold.sweep();
        end if;
        if v_fence > 0 then
            return 'granted ' || v_fence::text;
        end if;
    elsif l.owner = p_owner then
        v_fence := leasehold.granted_before(p_name, p_owner, p_ttl);
        if v_fence is not null then
            return 'granted ' || v_fence::text;
        end if;
    elsif (p_barges or not p_waits) and l.owner is not null and l.until > clock_timestamp() then
        return 'busy ' || l.owner || ' ' || leasehold.micros(l.until)::text || ' - -';
    end if;
    return leasehold.acquire_crowded(p_name, p_owner, p_client, p_mode, p_ttl, p_proposal, p_waits, p_barges, p_ticket);
end $$;

-- Returns how long it is until then, in microseconds; 0 if that is over.
create or replace function leasehold.micros(p_until timestamptz) returns bigint language sql volatile as $$
    select greatest(0::numeric, extract(epoch from p_until - clock_timestamp()) * 1000000::numeric)::bigint
$$;

-- The same for a lock that may have other holders, or waiters.
create or replace function leasehold.acquire_crowded(
    p_name text, p_owner text, p_client text, p_mode integer, p_ttl bigint, p_proposal bigint,
    p_waits boolean, p_barges boolean, p_ticket bigint default null
) returns text language plpgsql as $$
declare
    l leasehold.lock;
    v_now timestamptz;
    v_fence bigint;
    v_ticket bigint;
    v_heard timestamptz;
    v_held record;
    v_ahead record;
    v_holder text;
    v_until timestamptz;
    v_place text;
    v_setting text;
begin
    l := leasehold.lock_row(p_name);
    if l.crowded then
        if exists (select from leasehold.ended e
            where e.name = p_name and e.owner = p_owner and e.until > clock_timestamp())
        then
            -- A late request of an owner that was released or broken.
            return 'busy - - - -';
        end if;
        select w.ticket, w.heard into v_ticket, v_heard from leasehold.waiter w
        where w.name = p_name and w.owner = p_owner;
        perform leasehold.keep_after_silence(v_heard);
    end if;
    if l.owner is not null and l.until > clock_timestamp() then
        v_fence := case when l.owner = p_owner then leasehold.granted_before(p_name, p_owner, p_ttl) end;
        if v_fence is not null then
            return 'granted ' || v_fence::text;
        end if;
        v_holder := l.owner;
        v_until := l.until;
    else
        v_now := clock_timestamp();
        if l.crowded then
            perform leasehold.drop_expired(p_name, p_owner, v_now);
            v_fence := leasehold.shared_before(p_name, p_owner, p_ttl);
            if v_fence is not null then
                return 'granted ' || v_fence::text;
            end if;
        end if;
        select count(*) as number, max(s.mode) as mode, min(s.until) as until, min(s.owner) as owner into v_held
        from leasehold.sharer s where s.name = p_name and s.until > v_now;
        if p_mode > 0 and v_held.mode > 0 and v_held.mode <> p_mode then
            delete from leasehold.waiter w where w.name = p_name and w.owner = p_owner;
            return 'permits ' || v_held.mode::text;
        end if;
        if not leasehold.admits(p_mode, v_held.number, v_held.mode) then
            v_holder := v_held.owner;
            v_until := v_held.until;
        else
            -- The lock itself is free for this mode. Who comes first?
            select count(*) as number, count(*) filter (where w.mode <> p_mode) as others into v_ahead
            from leasehold.waiter w
            where w.name = p_name and w.owner <> p_owner
                and (coalesce(v_ticket, p_ticket) is null or w.ticket < coalesce(v_ticket, p_ticket));
            if p_barges or v_ahead.number = 0 or (v_ahead.others = 0
                and leasehold.admits(p_mode, v_held.number + v_ahead.number, p_mode))
            then
                return 'granted ' || leasehold.grant_to(l, p_owner, p_client, p_mode, p_ttl, p_proposal)::text;
            end if;
        end if;
    end if;
    if p_waits and not p_barges then
        v_place := leasehold.enqueue(l, p_owner, p_client, p_mode, p_ttl, p_proposal, p_ticket, v_ticket);
    end if;
    -- A crash of the server may undo what only changes the queue. The waiter then takes its place again.
    v_setting := set_config('synchronous_commit', 'off', true);
    return 'busy ' || coalesce(v_holder, '-') || ' ' || coalesce(leasehold.micros(v_until)::text, '-')
        || ' ' || coalesce(v_place, '- ' || coalesce(v_ticket::text, '-'));
end $$;

-- Returns the fence of an owner that holds already: a release passed the lock to it, or the answer to its earlier attempt
-- was lost. The lease begins anew, since the client counts from its last request. A place in the queue may have been kept for
-- longer than that.
create or replace function leasehold.granted_before(p_name text, p_owner text, p_ttl bigint)
returns bigint language plpgsql as $$
declare
    v_fence bigint;
begin
    update leasehold.lock x set until = clock_timestamp() + p_ttl::float8 * interval '1 microsecond'
    where x.name = p_name and x.owner = p_owner and not x.broken and x.until > clock_timestamp()
    returning x.fence into v_fence;
    return v_fence;
end $$;

-- The same for an owner that shares the lock.
create or replace function leasehold.shared_before(p_name text, p_owner text, p_ttl bigint)
returns bigint language plpgsql as $$
declare
    v_fence bigint;
begin
    update leasehold.sharer s set until = clock_timestamp() + p_ttl::float8 * interval '1 microsecond'
    where s.name = p_name and s.owner = p_owner and s.until > clock_timestamp()
    returning s.fence into v_fence;
    return v_fence;
end $$;

-- Whether a lock that `p_number` sharers hold in `p_held` mode has room for one more in this mode.
create or replace function leasehold.admits(p_mode integer, p_number bigint, p_held integer)
returns boolean language sql immutable as $$
    select p_number = 0 or (p_held = p_mode and (p_mode = -1 or p_number < p_mode))
$$;

-- Locks the row of a lock against all changes but those that a transaction with leasehold.holds() may see.
create or replace function leasehold.lock_row(p_name text) returns leasehold.lock language plpgsql as $$
declare
    l leasehold.lock;
begin
    loop
        select * into l from leasehold.lock x where x.name = p_name for no key update;
        if found then
            return l;
        end if;
        insert into leasehold.lock (name, fence) values (p_name, 0) on conflict do nothing;
    end loop;
end $$;

-- Drops what is over at `p_now`. The owner that asks keeps its place. Waits for transactions of holders whose lease has ended. What
-- ends during that wait stays, since it may have a transaction, too.
create or replace function leasehold.drop_expired(p_name text, p_owner text, p_now timestamptz)
returns void language plpgsql as $$
begin
    delete from leasehold.ended e where e.name = p_name and e.until <= p_now;
    delete from leasehold.waiter w where w.name = p_name and w.until <= p_now and w.owner <> p_owner;
    delete from leasehold.sharer s where s.name = p_name and s.until <= p_now;
end $$;

-- Grants the lock, whose row is locked, and lets in those that wait for the same.
create or replace function leasehold.grant_to(
    l leasehold.lock, p_owner text, p_client text, p_mode integer, p_ttl bigint, p_proposal bigint
) returns bigint language plpgsql as $$
declare
    v_fence bigint := greatest(l.fence, p_proposal) + 1;
    v_until timestamptz;
begin
    if l.owner is not null then
        -- Waits for a transaction of the former holder. That transaction then sees that the lease is over, also with an old snapshot.
        perform from leasehold.lock x where x.name = l.name for update;
    end if;
    if l.crowded then
        delete from leasehold.waiter w where w.name = l.name and w.owner = p_owner;
    end if;
    v_until := clock_timestamp() + p_ttl::float8 * interval '1 microsecond';
    if p_mode = 0 then
        update leasehold.lock x
        set fence = v_fence, owner = p_owner, client = p_client, since = p_proposal, until = v_until,
            broken = false, crowded = l.crowded and leasehold.is_crowded(l.name)
        where x.name = l.name;
        return v_fence;
    end if;
    insert into leasehold.sharer (name, owner, mode, fence, client, since, until)
    values (l.name, p_owner, p_mode, v_fence, p_client, p_proposal, v_until);
    l.fence := v_fence;
    l.owner := null;
    l.crowded := true;
    perform leasehold.pass_on(l, null);
    return v_fence;
end $$;

-- Takes or keeps a place in the queue. Returns its position from 1 to 1,000, and its ticket. `p_wanted` is the ticket that the owner had
-- before its place was lost, and `p_ticket` that of the place that it has.
create or replace function leasehold.enqueue(
    l leasehold.lock, p_owner text, p_client text, p_mode integer, p_ttl bigint, p_proposal bigint, p_wanted bigint,
    p_ticket bigint
) returns text language plpgsql as $$
declare
    v_ticket bigint := p_ticket;
    v_position bigint;
    v_now timestamptz := clock_timestamp();
    v_until timestamptz := v_now + interval '4 seconds';
begin
    if v_ticket is not null then
        update leasehold.waiter w set until = v_until, heard = v_now, proposal = p_proposal
        where w.name = l.name and w.ticket = v_ticket;
    else
        select greatest((extract(epoch from v_now) * 1000000::numeric)::bigint, max(w.ticket) + 1) into v_ticket
        from leasehold.waiter w where w.name = l.name;
        if p_wanted < v_ticket
            and not exists (select from leasehold.waiter w where w.name = l.name and w.ticket = p_wanted)
        then
            v_ticket := p_wanted;
        end if;
        insert into leasehold.waiter (name, ticket, owner, mode, client, ttl, proposal, until, heard)
        values (l.name, v_ticket, p_owner, p_mode, p_client, p_ttl, p_proposal, v_until, v_now);
        if not l.crowded then
            update leasehold.lock x set crowded = true where x.name = l.name;
        end if;
    end if;
    -- A count of thousands would cost more than all the rest.
    select count(*) into v_position from (
        select from leasehold.waiter w
        where w.name = l.name and w.ticket <= v_ticket and w.until > v_now limit 1000) w;
    return v_position::text || ' ' || v_ticket::text;
end $$;

-- Whether other tables have rows of this lock. In plpgsql, since the server plans a function in SQL anew for each call.
create or replace function leasehold.is_crowded(p_name text) returns boolean language plpgsql as $$
begin
    return exists (select from leasehold.waiter w where w.name = p_name)
        or exists (select from leasehold.sharer s where s.name = p_name)
        or exists (select from leasehold.ended e where e.name = p_name);
end $$;
