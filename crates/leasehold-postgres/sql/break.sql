-- Breaks the exclusive lease of an owner, and keeps the record of the break, which is JSON.
--
-- Unless `p_at_once`, the owner keeps others out until the end of its lease. Returns whether the lease existed, and how
-- many microseconds the lock stays closed.
create or replace function leasehold.break_lease(
    p_name text, p_owner text, p_record text, p_at_once boolean,
    out existed boolean, out closed_for bigint
) language plpgsql as $$
declare
    l leasehold.lock := leasehold.lock_row(p_name);
begin
    existed := l.owner = p_owner and l.until > clock_timestamp();
    existed := coalesce(existed, false);
    perform leasehold.remember_end(p_name, p_owner, true, case when existed then l.until else clock_timestamp() end);
    if existed then
        insert into leasehold.break (name, owner, record, until)
        values (p_name, p_owner, p_record, clock_timestamp() + interval '7 days')
        on conflict (name) do update set owner = excluded.owner, record = excluded.record, until = excluded.until;
    end if;
    if existed and p_at_once then
        perform from leasehold.lock x where x.name = p_name for update;
        l.owner := null;
        perform leasehold.pass_on(l, null);
    else
        update leasehold.lock x set broken = x.broken or existed, crowded = true where x.name = p_name;
        if existed then
            closed_for := leasehold.micros(l.until);
        end if;
    end if;
end $$;
