-- Which of many streams have something to take, by walking the streams of what there is: a worker that serves
-- thousands of types, of which few have tasks, looks at few. Null if there are too many for that to be of use.
create or replace function sluice.busy_streams(p_streams int[]) returns int[]
language plpgsql as $$
declare v_found int[]; v_all int[] := '{}';
begin
  for v_table in 1..2 loop
    with recursive walk as (
      (select x.stream, 1 as n from (
        (select r.stream from sluice.ready r where v_table = 1 order by r.stream limit 1)
        union all
        (select g.stream from sluice.gated g where v_table = 2 order by g.stream limit 1)) x)
      union all
      select x.stream, w.n + 1 from walk w cross join lateral (
        (select r.stream from sluice.ready r where v_table = 1 and r.stream > w.stream order by r.stream limit 1)
        union all
        (select g.stream from sluice.gated g where v_table = 2 and g.stream > w.stream order by g.stream limit 1)) x
      where w.n < 65
    ) select array_agg(stream) into v_found from walk;
    if cardinality(v_found) > 64 then return null; end if;
    v_all := v_all || v_found;
  end loop;
  return array(
    select u.stream from unnest(p_streams) with ordinality u(stream, i) where u.stream = any (v_all) order by u.i);
end $$;
