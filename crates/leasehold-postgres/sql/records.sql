-- The records. A version is a fence and a step. A record remembers the greatest version for seven days after its last
-- opening or write.

-- Locks the row of a record, and forgets in it what is over.
create or replace function leasehold.record_row(p_name text) returns leasehold.record language plpgsql as $$
declare
    r leasehold.record;
begin
    loop
        select * into r from leasehold.record x where x.name = p_name for update;
        exit when found;
        insert into leasehold.record (name, seen_fence, seen_step, seen_until)
        values (p_name, 0, 0, clock_timestamp()) on conflict do nothing;
    end loop;
    if r.seen_until <= clock_timestamp() then
        r.seen_fence := 0;
        r.seen_step := 0;
    end if;
    if r.until <= clock_timestamp() then
        r.fence := null;
    end if;
    -- A value is often kept for longer.
    if (r.fence, r.step) > (r.seen_fence, r.seen_step) then
        r.seen_fence := r.fence;
        r.seen_step := r.step;
    end if;
    return r;
end $$;

-- Opens a record with a fence: shuts out smaller ones. `superseded` is a greater fence that was there.
create or replace function leasehold.open_record(
    p_name text, p_fence bigint,
    out superseded bigint, out fence bigint, out step bigint, out value bytea, out remaining bigint
) language plpgsql as $$
declare
    r leasehold.record := leasehold.record_row(p_name);
begin
    if r.seen_fence > p_fence then
        superseded := r.seen_fence;
        return;
    end if;
    update leasehold.record x
    set seen_fence = p_fence, seen_step = case when r.seen_fence = p_fence then r.seen_step else 0 end,
        seen_until = clock_timestamp() + interval '7 days'
    where x.name = p_name;
    if r.fence is not null then
        fence := r.fence;
        step := r.step;
        value := r.value;
        remaining := leasehold.micros(r.until);
    end if;
end $$;

-- Writes a record, unless it has seen a greater version. Returns its fence then, otherwise null.
create or replace function leasehold.write_record(
    p_name text, p_fence bigint, p_step bigint, p_value bytea, p_retention bigint
) returns bigint language plpgsql as $$
declare
    r leasehold.record := leasehold.record_row(p_name);
begin
    if (r.seen_fence, r.seen_step) > (p_fence, p_step) then
        return r.seen_fence;
    end if;
    update leasehold.record x
    set seen_fence = p_fence, seen_step = p_step, seen_until = clock_timestamp() + interval '7 days',
        fence = p_fence, step = p_step, value = p_value,
        until = clock_timestamp() + p_retention::float8 * interval '1 microsecond'
    where x.name = p_name;
    return null;
end $$;
