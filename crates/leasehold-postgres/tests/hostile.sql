-- Gives `public` functions and operators that fit better than those of pg_catalog, wherever the functions of the schema
-- name one without its exact types. Each of them fails when it runs. Then it lets the functions of the schema look there.
do $do$
declare
    v_types text[] := array['bool', 'int4', 'int8', 'numeric', 'float8', 'text', 'timestamptz', 'interval', 'tid', 'int4[]',
        'int8[]', 'text[]'];
    v_operators text[] := array['=', '<>', '<', '<=', '>', '>=', '+', '-', '*', '/', '||'];
    v_hit text := 'language plpgsql as $$ begin raise exception ''a function of another user ran''; end $$';
    a text;
    b text;
    v_name text;
    v_count integer;
    v_arguments text;
begin
    foreach a in array v_types loop
        foreach b in array v_types loop
            execute format('create function public.hit(%s, %s) returns %s %s', a, b, a, v_hit);
            foreach v_name in array v_operators loop
                if to_regoperator(format('pg_catalog.%s(%s, %s)', v_name, a, b)) is null then
                    execute format('create operator public.%s (leftarg = %s, rightarg = %s, function = public.hit)',
                        v_name, a, b);
                end if;
            end loop;
        end loop;
    end loop;
    -- Each function of the system that the functions of the schema may call, with as many parameters.
    for v_name, v_count in
        select distinct s.proname, n from pg_proc f, regexp_matches(f.prosrc, '\m([a-z_]+)\(', 'g') called (name),
            pg_proc s, generate_series(1, 3) n
        where f.pronamespace = 'leasehold'::regnamespace and s.pronamespace = 'pg_catalog'::regnamespace
            and s.proname = called.name[1] and (s.pronargs = n or s.provariadic <> 0 and n > s.pronargs)
    loop
        foreach a in array v_types loop
            foreach b in array case v_count when 1 then array[''] else v_types end loop
                v_arguments := case v_count when 1 then a when 2 then a || ', ' || b else 'text, ' || a || ', ' || b end;
                if to_regprocedure(format('pg_catalog.%I(%s)', v_name, v_arguments)) is null then
                    execute format('create function public.%I(%s) returns %s %s', v_name, v_arguments, a, v_hit);
                end if;
            end loop;
        end loop;
    end loop;
    -- The search path of a session of Leasehold would hide them.
    for a in select oid::regprocedure::text from pg_proc
        where pronamespace = 'leasehold'::regnamespace and proconfig is null
    loop
        execute format('alter function %s set search_path = public', a);
    end loop;
end $do$;
