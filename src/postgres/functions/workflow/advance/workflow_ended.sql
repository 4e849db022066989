-- Advances the runs of tasks that have ended. p_states null: all succeeded. Tasks that belong to no run cost one
-- lookup. p_parents: tasks that have just begun to wait for their children. Locks the runs by id; everything after that
-- is read by later statements. Returns the streams and the number of new tasks, and whether some of them joined a
-- window.
create or replace function sluice.workflow_ended(
  p_ids bigint[], p_states sluice.state[] default null, p_parents bigint[] default null,
  out streams int[], out made int, out joined boolean
) language plpgsql /* settings: index plans */ as $$
declare
  v_runs bigint[]; v_nodes smallint[]; v_succeeded int[]; v_failed int[]; v_cancelled int[]; v_firsts bigint[];
  v_single_successes boolean; v_locks bigint[]; t record; v record;
begin
  made := 0;
  joined := false;
  select array_agg(x.run), array_agg(x.node), array_agg(x.s), array_agg(x.f), array_agg(x.c), array_agg(x.first),
    p_states is null and bool_and(x.s = 1)
  into v_runs, v_nodes, v_succeeded, v_failed, v_cancelled, v_firsts, v_single_successes
  from (
    select w.run, w.node,
      (count(*) filter (where coalesce(u.state, 'succeeded') = 'succeeded'))::int as s,
      (count(*) filter (where u.state = 'failed'))::int as f,
      (count(*) filter (where u.state = 'cancelled'))::int as c,
      coalesce(min(u.id) filter (where u.state = 'failed'), min(u.id) filter (where u.state = 'cancelled')) as first
    from unnest(p_ids, p_states) u(id, state)
    cross join lateral (select run, node from sluice.workflow_task k where k.id = u.id limit 1) w
    group by w.run, w.node
  ) x;
  v_locks := v_runs;
  if p_parents is not null then
    -- guard: a parent locks what it waits for -> test/postgres/workflow/races.test.ts: "a parent that goes to sleep while its last item ends wakes"
    v_locks := /* guard:waits-for */ v_locks
      || array(select r from sluice.parent p, unnest(p.runs) r where p.id = any (p_parents)) /* end */;
  end if;
  if v_locks is null then
    return;
  end if;
  -- guard: run lock -> test/postgres/workflow/races.test.ts: "two concurrent last completions advance a run once"
  perform from sluice.workflow_run r where r.id = any (v_locks) order by r.id
    /* guard:run-lock */ for no key update /* end */;

  t := sluice.workflow_end_nodes(v_runs, v_nodes, v_succeeded, v_failed, v_cancelled, v_firsts, v_single_successes);
  if t.over_runs is not null then
    v := sluice.workflow_cascade(t.over_runs, t.over_nodes, t.all_succeeded);
    streams := v.streams;
    made := v.made;
    joined := v.joined;
  end if;
  if /* guard:again */ p_parents is not null /* end */ then
    -- A child that ended before this task slept has not seen it. Under the lock of its run, the child is seen here.
    -- guard: a parent looks again -> test/postgres/workflow/races.test.ts: "a parent that goes to sleep while its last item ends wakes"
    perform sluice.workflow_wake(array(
      select p.id from sluice.parent p
      where p.id = any (p_parents)
        and exists (select from sluice.workflow_run r where r.id = any (p.runs) and r.finished_at is not null)));
  end if;
end $$;
