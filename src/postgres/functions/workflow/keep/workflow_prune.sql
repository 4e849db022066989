-- Deletes runs that are older than their time, with their tasks: at most p_max tasks, runs and nodes at once. A run of
-- which only a part is gone is marked as pruning, and no longer found. A task that still holds its order key is
-- detached from its run and stays. Locks runs FOR UPDATE with SKIP LOCKED.
--
-- p_after: how far the walk over handlers' fan-outs has come (workflow_old_maps), 0 to begin. Returns how much was
-- deleted, at least p_max while there is more, and where to go on (after), 0: the walk is at its end.
create or replace function sluice.workflow_prune(
  p_succeeded_ms bigint, p_failed_ms bigint, p_cancelled_ms bigint, p_max int, p_after bigint default 0,
  out pruned int, out after bigint
) language plpgsql /* settings: index plans */ as $$
declare
  v_now timestamptz := sluice.clock();
  v_runs bigint[]; v_maps bigint[]; v_cut bigint[]; v_ids bigint[]; v_n int; v_bare int; v_gone int;
begin
  pruned := 0;
  v_runs := array(
    select x.id
    from (
      values ('succeeded'::sluice.state, p_succeeded_ms), ('failed', p_failed_ms), ('cancelled', p_cancelled_ms)
    ) a(state, ms)
    cross join lateral (
      select r.id from sluice.workflow_run r
      where r.parent is null and r.state = a.state and r.finished_at < v_now - a.ms * interval '1 millisecond'
      order by r.finished_at limit p_max for update skip locked
    ) x limit p_max);
  select m.ids, m.after into v_maps, after
  from sluice.workflow_old_maps(v_now, p_succeeded_ms, p_failed_ms, p_cancelled_ms, p_max, p_after) m;
  if v_maps <> '{}' then
    v_runs := v_runs
      || array(select r.id from sluice.workflow_run r where r.id = any (v_maps) for update skip locked);
  end if;
  if v_runs = '{}' then
    return;
  end if;
  with gone as (
    delete from sluice.workflow_task
    where id = any (array(
      select x.id
      from unnest(v_runs) r(id)
      cross join lateral (select w.id from sluice.workflow_task w where w.run = r.id limit p_max) x limit p_max))
    returning id, run
  )
  select array_agg(id), count(*), array_agg(distinct run) into v_ids, v_n, v_cut from gone;
  perform sluice.workflow_prune_tasks(v_ids);
  v_runs := array(
    select r.id from unnest(v_runs) r(id)
    where not exists (select from sluice.workflow_task w where w.run = r.id));
  v_bare := cardinality(v_runs);
  -- guard: few nodes at once -> test/postgres/workflow/keep.test.ts: "pruning deletes a bounded number of nodes per statement, in whole runs"
  /* guard:few */ v_runs := sluice.workflow_few_nodes(v_runs, p_max); /* end */
  v_gone := sluice.workflow_prune_runs(v_runs);
  update sluice.workflow_run set pruning = true where id = any (v_cut) and not pruning;
  pruned := v_n + v_gone;
  if v_gone < v_bare then
    pruned := greatest(pruned, p_max);
  end if;
  -- Some of what was seen may be left: the walk stays here.
  if pruned >= p_max then
    after := p_after;
  end if;
end $$;
