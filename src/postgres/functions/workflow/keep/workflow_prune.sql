-- Runs older than their time, with their tasks: at most p_max tasks, runs and nodes at once. One of which only a part is gone
-- is marked, and gone for whoever asks. A task that still holds its order key is let go from its run and stays. A
-- handler's fan-out is kept while its task may ask for it: also one that failed may be tried again. So old ones may stay
-- for long, and are looked at in parts: the oldest, and some by a walk, which has come up to p_after, 0 to begin; after:
-- where to go on, 0: it has come to the end.
create or replace function sluice.workflow_prune(p_succeeded_ms bigint, p_failed_ms bigint, p_cancelled_ms bigint, p_max int, p_after bigint default 0, out pruned int, out after bigint) language plpgsql
/* settings: index plans */ as $$
declare v_now timestamptz := sluice.clock(); v_runs bigint[]; v_look bigint[]; v_maps bigint[]; v_cut bigint[]; v_ids bigint[]; v_blocking bigint[]; v_n int; v_bare int; v_gone int;
begin
  pruned := 0;
  v_runs := array(select x.id from (values ('s'::"char", p_succeeded_ms), ('f', p_failed_ms), ('c', p_cancelled_ms)) a(state, ms)
    cross join lateral (select r.id from sluice.workflow_run r where r.parent is null and r.state = a.state and r.finished_at < v_now - a.ms * interval '1 millisecond'
      order by r.finished_at limit p_max for update skip locked) x limit p_max);
  v_look := array(select x.id from sluice.workflow_run x where x.parent is not null and x.finished_at is not null and x.id > p_after order by x.id limit 500);
  after := coalesce(v_look[500], 0);
  v_look := v_look || array(select x.id from sluice.workflow_run x where x.parent is not null and x.finished_at is not null and x.id <= p_after order by x.id limit 500);
  v_maps := array(select r.id from (select x.* from sluice.workflow_run x where x.id = any (v_look)) r
    left join lateral (select k.id from sluice.task k where k.id = r.parent limit 1) t on true left join lateral (select k.state from sluice.done k where k.id = t.id limit 1) d on true
    where r.finished_at < v_now - case r.state when 's' then p_succeeded_ms when 'f' then p_failed_ms else p_cancelled_ms end * interval '1 millisecond'
      and (t.id is null or d.state = 's') order by r.id limit p_max);
  if v_maps <> '{}' then v_runs := v_runs || array(select r.id from sluice.workflow_run r where r.id = any (v_maps) for update skip locked); end if;
  if v_runs = '{}' then return; end if;
  with gone as (
    delete from sluice.workflow_task where id = any (array(select x.id from unnest(v_runs) r(id) cross join lateral (select w.id from sluice.workflow_task w where w.run = r.id limit p_max) x limit p_max)) returning id, run
  ) select array_agg(id), count(*), array_agg(distinct run) into v_ids, v_n, v_cut from gone;
  v_blocking := array(select b.id from unnest(v_ids) u(id) cross join lateral (select id from sluice.block k where k.id = u.id limit 1) b);
  delete from sluice.done where id = any (v_ids) and id <> all (v_blocking);
  delete from sluice.task where id = any (v_ids) and id <> all (v_blocking);
  v_runs := array(select r.id from unnest(v_runs) r(id) where not exists (select from sluice.workflow_task w where w.run = r.id));
  v_bare := cardinality(v_runs);
  -- guard: few nodes at once -> test/postgres/workflow/keep.test.ts: "pruning deletes a bounded number of nodes at once, whole runs at a time"
  /* guard:few */ v_runs := sluice.workflow_few_nodes(v_runs, p_max); /* end */
  delete from sluice.workflow_node where run = any (v_runs);
  delete from sluice.workflow_event where run = any (v_runs);
  delete from sluice.workflow_unplaced where ctid = any (array(select ctid from sluice.workflow_unplaced where run = any (v_runs) for update skip locked));
  delete from sluice.workflow_run where id = any (v_runs);
  get diagnostics v_gone = row_count;
  update sluice.workflow_run set pruning = true where id = any (v_cut) and not pruning;
  pruned := v_n + v_gone;
  if v_gone < v_bare then pruned := greatest(pruned, p_max); end if;
  -- Of what was seen some may be left: the walk stays here.
  if pruned >= p_max then after := p_after; end if;
end $$;
