-- Breaks the lease of an owner, in any mode, and keeps the record of the break, which is JSON.
--
-- Unless `p_at_once`, the owner keeps others out until the end of its lease. Returns whether the lease existed, and for how
-- many microseconds the owner keeps others out.
create or replace function leasehold.break_lease(
    p_name text, p_owner text, p_record text, p_at_once boolean,
    out existed boolean, out closed_for bigint
) language plpgsql as $$
declare
    l leasehold.lock := leasehold.lock_row(p_name);
    v_until timestamptz := case when l.owner = p_owner then l.until end;
begin
    if v_until is null then
        select s.until into v_until from leasehold.sharer s where s.name = p_name and s.owner = p_owner;
    end if;
    existed := coalesce(v_until > clock_timestamp(), false);
    perform leasehold.remember_end(p_name, p_owner, true, case when existed then v_until else clock_timestamp() end);
    if existed then
        insert into leasehold.break (name, owner, record, until)
        values (p_name, p_owner, p_record, clock_timestamp() + interval '7 days')
        on conflict (name) do update set owner = excluded.owner, record = excluded.record, until = excluded.until;
    end if;
    if existed and p_at_once then
        perform leasehold.end_lease(p_name, p_owner);
        l.owner := nullif(l.owner, p_owner);
        perform leasehold.pass_on(l, null);
    else
        update leasehold.lock x
        set broken = x.broken or existed and x.owner is not distinct from p_owner, crowded = true
        where x.name = p_name;
        update leasehold.sharer s set broken = true where s.name = p_name and s.owner = p_owner;
        if existed then
            closed_for := leasehold.micros(v_until);
        end if;
    end if;
end $$;

-- Ends the lease of an owner, if it has one. Waits for a transaction of the owner that called leasehold.holds(). The caller
-- passes the lock on. Returns whether the lease was valid.
create or replace function leasehold.end_lease(p_name text, p_owner text) returns boolean language plpgsql as $$
declare
    v_held boolean;
    v_shared boolean;
begin
    select x.until > clock_timestamp() and not x.broken into v_held
    from leasehold.lock x where x.name = p_name and x.owner = p_owner for update;
    delete from leasehold.sharer s where s.name = p_name and s.owner = p_owner
    returning s.until > clock_timestamp() and not s.broken into v_shared;
    return coalesce(v_held, false) or coalesce(v_shared, false);
end $$;
