-- Renews leases, and makes exclusive ones shared whose mode is given as -1. The arrays have the same length.
--
-- Returns for each: 0 renewed, 1 another owner holds the lock, 2 the lease is gone, 3 an operator broke it, 4 it cannot become
-- shared as long as a transaction of the holder is open.
create or replace function leasehold.renew(p_names text[], p_owners text[], p_modes integer[], p_ttls bigint[])
returns integer[] language plpgsql as $$
declare
    v_renewed bigint[];
    v_answers integer[] := '{}';
begin
    with renewed as (
        update leasehold.lock x
        set until = greatest(x.until, clock_timestamp() + r.ttl::float8 * interval '1 microsecond')
        from unnest(p_names, p_owners, p_modes, p_ttls) with ordinality r (name, owner, mode, ttl, number)
        where x.name = r.name and x.owner = r.owner and r.mode = 0 and not x.broken and x.until > clock_timestamp()
        returning r.number
    )
    select pg_catalog.array_agg(number) into v_renewed from renewed;
    if pg_catalog.cardinality(v_renewed) = pg_catalog.cardinality(p_names) then
        return pg_catalog.array_fill(0, array[pg_catalog.cardinality(p_names)]);
    end if;
    for i in 1 .. pg_catalog.cardinality(p_names) loop
        if i = any (v_renewed) then
            v_answers := pg_catalog.array_append(v_answers, 0);
        else
            v_answers := pg_catalog.array_append(
                v_answers, leasehold.renew_other(p_names[i], p_owners[i], p_modes[i], p_ttls[i]));
        end if;
    end loop;
    return v_answers;
end $$;

-- Renews a lease that is shared, or that becomes shared, or finds out why it is lost.
create or replace function leasehold.renew_other(p_name text, p_owner text, p_mode integer, p_ttl bigint)
returns integer language plpgsql as $$
begin
    if exists (select from leasehold.ended e where e.name = p_name and e.owner = p_owner and e.broken)
        or exists (select from leasehold.break b where b.name = p_name and b.owner = p_owner)
    then
        return 3;
    end if;
    if p_mode <> 0 then
        if p_mode = -1 and exists (select from leasehold.lock x where x.name = p_name and x.owner = p_owner) then
            begin
                perform leasehold.downgrade(p_name, p_owner);
            exception when lock_not_available then
                -- The other leases are renewed all the same.
                return 4;
            end;
        end if;
        update leasehold.sharer s
        set until = greatest(s.until, clock_timestamp() + p_ttl::float8 * interval '1 microsecond')
        where s.name = p_name and s.owner = p_owner and s.mode = p_mode and not s.broken and s.until > clock_timestamp();
        if found then
            return 0;
        end if;
    end if;
    return case when exists (select from leasehold.holder h where h.name = p_name) then 1 else 2 end;
end $$;

-- Makes an exclusive lease shared, and lets the next readers in. Nothing happens if the owner has none.
create or replace function leasehold.downgrade(p_name text, p_owner text) returns void language plpgsql as $$
declare
    l leasehold.lock;
begin
    -- Waits for a transaction of the holder, which relies on an exclusive lock.
    select * into l from leasehold.lock x
    where x.name = p_name and x.owner = p_owner and not x.broken and x.until > clock_timestamp()
    for update;
    if not found then
        return;
    end if;
    insert into leasehold.sharer (name, owner, mode, fence, client, since, until)
    values (p_name, p_owner, -1, l.fence, l.client, l.since, l.until);
    l.owner := null;
    perform leasehold.pass_on(l, null);
end $$;
