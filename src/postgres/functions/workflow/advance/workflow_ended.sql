-- These tasks have come to their end; p_states null: they succeeded. Those that belong to no run cost a look.
-- slept: tasks that have just begun to wait for their children.
create or replace function sluice.workflow_ended(p_ids bigint[], p_states "char"[] default null, p_slept bigint[] default null, out streams int[], out made int, out joined boolean)
language plpgsql /* settings: index plans */ as $$
declare v record; t record; v_s int[]; v_f int[]; v_c int[]; v_firsts bigint[]; v_runs bigint[]; v_nodes smallint[]; v_over_runs bigint[]; v_over_nodes smallint[]; v_good boolean := true; v_lone boolean; v_locks bigint[]; v_n int;
begin
  made := 0; joined := false;
  select array_agg(x.run), array_agg(x.node), array_agg(x.s), array_agg(x.f), array_agg(x.c), array_agg(x.first), p_states is null and bool_and(x.s = 1)
  into v_runs, v_nodes, v_s, v_f, v_c, v_firsts, v_lone
  from (select w.run, w.node, (count(*) filter (where coalesce(u.state, 's') = 's'))::int as s, (count(*) filter (where u.state = 'f'))::int as f, (count(*) filter (where u.state = 'c'))::int as c, coalesce(min(u.id) filter (where u.state = 'f'), min(u.id) filter (where u.state = 'c')) as first
    from unnest(p_ids, p_states) u(id, state) cross join lateral (select run, node from sluice.workflow_task k where k.id = u.id limit 1) w group by w.run, w.node) x;
  v_locks := v_runs;
  if p_slept is not null then
    -- guard: a parent locks what it waits for -> test/postgres/workflow/races.test.ts: "a parent that goes to sleep beside its last child wakes"
    v_locks := /* guard:waits-for */ v_locks || array(select r from sluice.parent p, unnest(p.runs) r where p.id = any (p_slept)) /* end */;
  end if;
  if v_locks is null then return; end if;
  -- guard: run lock -> test/postgres/workflow/races.test.ts: "two last completers advance once"
  perform from sluice.workflow_run r where r.id = any (v_locks) order by r.id /* guard:run-lock */ for no key update /* end */;

  if v_lone then
    -- The life of a chain: nodes of one task, which has succeeded. All become the same, so none is looked up twice.
    with counted as (
      update sluice.workflow_node n set succeeded = 1, state = 's', finished_at = sluice.clock() where n.ctid = any (array(
        select x.tid from unnest(v_runs, v_nodes) u(run, node)
        cross join lateral (select k.ctid as tid from sluice.workflow_node k where k.run = u.run and k.node = u.node and k.state = 'r' and k.policy = 't' limit 1) x)) returning n.run, n.node
    ) select array_agg(run), array_agg(node) into v_over_runs, v_over_nodes from counted;
    if cardinality(v_over_runs) = cardinality(v_runs) then v_runs := null;
    elsif v_over_runs is not null then
      select array_agg(u.run), array_agg(u.node) into v_runs, v_nodes from unnest(v_runs, v_nodes) u(run, node)
      where not exists (select from unnest(v_over_runs, v_over_nodes) o(run, node) where o.run = u.run and o.node = u.node);
      v_s := array_fill(1, array[cardinality(v_runs)]); v_f := array_fill(0, array[cardinality(v_runs)]); v_c := v_f;
    end if;
  end if;
  while v_runs is not null loop
    select * into t from sluice.workflow_tally(v_runs, v_nodes, v_s, v_f, v_c, v_firsts);
    v_over_runs := v_over_runs || t.over_runs; v_over_nodes := v_over_nodes || t.over_nodes;
    v_good := v_good and coalesce(t.good, true); v_runs := null; v_firsts := null;
    for i in 1..coalesce(cardinality(t.failing_runs), 0) loop
      v_n := sluice.workflow_give_up(t.failing_runs[i], t.failing_nodes[i], sluice.workflow_blame());
      if v_n is not null then
        v_runs := v_runs || t.failing_runs[i]; v_nodes := case when cardinality(v_runs) = 1 then t.failing_nodes[i:i] else v_nodes || t.failing_nodes[i] end;
        v_c := case when cardinality(v_runs) = 1 then array[v_n] else v_c || v_n end;
      end if;
    end loop;
    v_s := array_fill(0, array[coalesce(cardinality(v_runs), 0)]); v_f := v_s;
  end loop;
  if v_over_runs is not null then
    select * into v from sluice.workflow_cascade(v_over_runs, v_over_nodes, v_good);
    streams := v.streams; made := v.made; joined := v.joined;
  end if;
  if /* guard:again */ p_slept is not null /* end */ then
    -- A child that ended before this task went to sleep has not seen it: under the lock of its run we see it.
    -- guard: a parent looks again -> test/postgres/workflow/races.test.ts: "a parent that goes to sleep beside its last child wakes"
    perform sluice.workflow_wake(array(select p.id from sluice.parent p where p.id = any (p_slept)
      and exists (select from sluice.workflow_run r where r.id = any (p.runs) and r.finished_at is not null)));
  end if;
end $$;
