-- Drops old rows in one random page of each table that grows with the number of names. An attempt with
-- a new name calls it now and then, so the tables do not grow without end. It waits for nothing.
create or replace function leasehold.sweep() returns void language plpgsql as $$
declare
    v_week bigint := (extract(epoch from clock_timestamp() - interval '7 days') * 1000000::numeric)::bigint;
    v_range tid[];
begin
    -- The counters of fences continue from the clock of a client, so a row of last week is not needed.
    v_range := leasehold.random_page('leasehold.lock');
    delete from leasehold.lock where name in (
        select x.name from leasehold.lock x
        where x.ctid >= v_range[1] and x.ctid < v_range[2] and x.fence < v_week and x.owner is null and not x.crowded
        for update skip locked);
    -- A lock that was not used for a week may still say that it is crowded.
    v_range := leasehold.random_page('leasehold.lock');
    update leasehold.lock x set crowded = false where x.name in (
        select y.name from leasehold.lock y
        where y.ctid >= v_range[1] and y.ctid < v_range[2] and y.fence < v_week and y.crowded
        for no key update skip locked)
        and not leasehold.is_crowded(x.name);
    v_range := leasehold.random_page('leasehold.ended');
    delete from leasehold.ended where (name, owner) in (
        select e.name, e.owner from leasehold.ended e
        where e.ctid >= v_range[1] and e.ctid < v_range[2] and e.until <= clock_timestamp()
        for update skip locked);
    v_range := leasehold.random_page('leasehold.break');
    delete from leasehold.break where name in (
        select b.name from leasehold.break b
        where b.ctid >= v_range[1] and b.ctid < v_range[2] and b.until <= clock_timestamp()
        for update skip locked);
    v_range := leasehold.random_page('leasehold.record');
    delete from leasehold.record where name in (
        select r.name from leasehold.record r
        where r.ctid >= v_range[1] and r.ctid < v_range[2] and r.seen_until <= clock_timestamp()
            and (r.until is null or r.until <= clock_timestamp())
        for update skip locked);
end $$;

-- Returns the first place of a random page of a table, and that of the page behind it.
create or replace function leasehold.random_page(p_table regclass) returns tid[] language sql volatile as $$
    select array[('(' || page::text || ',0)')::tid, ('(' || (page + 1)::text || ',0)')::tid]
    from (select floor(random() * (pg_relation_size(p_table) / current_setting('block_size')::int)::float8)::bigint as page) p
$$;
