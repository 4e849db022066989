-- Takes the tasks of workers that have no row out of `running`, counts the crash against each, and decides what becomes
-- of it. Rows that another transaction has locked are skipped; rows of crash are locked in the order of their ids.
-- kind: release (back to ready or gated), fail, or cancel for `reason`. suspect: released, but to be claimed alone.
-- times: crashes so far. totals: those whose slots it held; task_gate: the gate of the task.
create or replace function sluice.reap_running()
returns table (
  id bigint, worker bigint, attempt smallint, started_at timestamptz, totals int[], lanes bigint[],
  stream int, rank smallint, task_gate int, lane_limits int[], times int, kind sluice.settlement, suspect boolean,
  reason text)
language plpgsql set jit = off as $$
#variable_conflict use_column
begin
  return query
  with gone as (
    delete from sluice.running where ctid = any (array(
      select r.ctid from sluice.running r
      where /* guard:gone */ not exists (select from sluice.worker w where w.id = r.worker) /* end */
      for update of r /* guard:locked */ skip locked /* end */))
    returning *
  ), unblamed as materialized (
    -- Workers that died while they ran user code to place a node of a run: no task in hand is to blame.
    select w.worker
    from (select distinct worker from gone) w
    where exists (select from sluice.workflow_trying t where t.worker = w.worker)
      or exists (select from sluice.workflow_unplaced u where u.died <> '{}' and u.died @> array[w.worker])
  ), crashed as (
    -- guard: who places a node may be to blame -> test/postgres/workflow/place.test.ts: "tasks of a worker that died while it placed a node are not blamed"
    insert into sluice.crash as c (id, workers)
    select id, array[worker] from gone
    /* guard:placer */ where worker not in (select p.worker from unblamed p) /* end */
    order by id
    on conflict (id) do update set workers = c.workers || excluded.workers
    returning c.id, cardinality(c.workers) as times
  )
  select g.id, g.worker, g.attempt, g.started_at, sluice.gates_of(g.gate) || g.stream_gate, g.lanes,
    t.stream, t.rank, t.gate, t.lane_limits, c.times,
    case
      when exists (select from sluice.stop s where s.id = g.id) then 'cancel'
      when c.times > 3 then /* guard:suspect */ 'fail' /* end */
      else 'release'
    end::sluice.settlement,
    c.times = 3,
    (select s.reason from sluice.stop s where s.id = g.id limit 1)
  from gone g
  left join crashed k on k.id = g.id
  cross join lateral (select * from sluice.task where id = g.id limit 1) t
  cross join lateral (
    select coalesce(k.times, (select cardinality(h.workers) from sluice.crash h where h.id = g.id), 0) as times) c;
end $$;
