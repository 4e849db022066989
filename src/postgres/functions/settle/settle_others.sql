-- Records every other outcome; see settle for the kinds. Returns what was freed, which tasks have ended and how, and
-- which wait for their children. One statement, although it is long: what it deletes goes from one part to the next as
-- rows, with lists of lanes of different lengths, which arrays between statements could not hold.
create or replace function sluice.settle_others(p_ids bigint[], p_claims bigint[], p_kinds sluice.settlement[],
  p_delays bigint[], p_outcomes text, out settled bigint[], out lanes bigint[], out gates int[], out gates_n int[],
  out ended bigint[], out ended_states sluice.state[], out parents bigint[])
language plpgsql /* settings: index plans */ as $$
declare
  v_outcomes text[] := string_to_array(p_outcomes, E'\x1e', '');
  v_back int[]; v_retried bigint[]; v_now timestamptz := sluice.clock();
begin
  with outcome as materialized (
    select distinct on (u.id) u.id, sluice.kind_of_outcome(u.id, u.kind) as kind, u.delay_ms, u.outcome::json, x.tid
    from unnest(p_ids, p_claims, p_kinds, p_delays, v_outcomes) u(id, claim, kind, delay_ms, outcome)
    cross join lateral (
      select r.ctid as tid from sluice.running r
      where r.id = u.id /* guard:fence */ and r.claim = u.claim /* end */ limit 1) x
  ), gone as (
    delete from sluice.running where ctid = any (array(select tid from outcome)) returning *
  ), asked as materialized (
    -- Asked to stop while it ran: whatever else happened, it does not run again.
    select g.id, o.kind in ('retry', 'snooze', 'release', 'wait') and /* guard:stop */ exists /* end */ (
      select from sluice.stop s where s.id = g.id) as asked from gone g join outcome o on o.id = g.id
  ), fate as materialized (
    select g.*, o.outcome as told, o.delay_ms, t.stream, t.rank, t.gate as task_gate, a.asked, k.kind,
      coalesce(k.kind = 'fail' and t.lane_limits[1] = sluice.blocking_limit(), false) as blocks,
      coalesce(sluice.lane_level(t.lanes[1]) = sluice.order_level(), false) as ordered,
      exists (select from sluice.crash c where c.id = g.id and cardinality(c.workers) >= 3) as suspect
    from gone g join outcome o on o.id = g.id join asked a on a.id = g.id
    cross join lateral (select * from sluice.task where id = g.id limit 1) t
    cross join lateral (
      select case when a.asked then 'cancel' when o.kind = 'retry' and g.attempt >= t.attempts_max then 'fail'
        else o.kind end as kind) k
  ), to_scheduled as (
    insert into sluice.scheduled (id, run_at, attempt, held)
    select id, v_now + delay_ms * interval '1 millisecond', case when kind = 'retry' then attempt else attempt - 1 end,
      /* guard:ordered */ ordered::int /* end */ from fate where kind in ('retry', 'snooze')
  ), failures as (
    insert into sluice.attempt (id, attempt, worker, started_at, failed_at, error)
    select f.id, f.attempt, (select w.name from sluice.worker w where w.id = f.worker), f.started_at, v_now, f.told
    from fate f where f.kind = 'retry'
  ), to_parent as (
    insert into sluice.parent (id, attempt, held, runs)
    select id, attempt - 1, ordered::int, array(select json_array_elements_text(told)::bigint)
    from fate where kind = 'wait'
  ), to_ready as (
    insert into sluice.ready (id, stream, rank, attempt, turn, lanes)
    select id, stream, rank, attempt - 1, sluice.own_turn(id), fate.lanes from fate
    where kind = 'release' and task_gate = 0 and not suspect
  ), to_gated as (
    insert into sluice.gated (id, stream, gate, rank, attempt, turn, lanes)
    select id, stream, task_gate, rank, attempt - 1, sluice.own_turn(id), fate.lanes from fate
    where kind = 'release' and task_gate <> 0 and not suspect
  ), to_suspect as (
    insert into sluice.suspect (id, stream, attempt, lanes)
    select id, stream, attempt - 1, fate.lanes from fate where kind = 'release' and suspect
  ), in_doubt as (
    -- It ran alone and did not kill its worker. Should it be in hand at one more crash, it is a suspect again.
    update sluice.crash c set workers = c.workers[:2] from fate
    where c.id = fate.id and suspect and kind in ('retry', 'snooze', 'wait')
  ), blocked as (
    insert into sluice.block (id, lane) select id, fate.lanes[1] from fate where blocks
  ), history as (
    insert into sluice.done (id, state, attempt, worker, started_at, finished_at, outcome)
    select id, sluice.state_after(kind), attempt, worker, started_at, v_now, case when asked then
      json_build_object('reason', (select s.reason from sluice.stop s where s.id = fate.id limit 1)) else told end
    from fate where kind in ('fail', 'cancel')
  ), freed as (
    -- A task that is handed back keeps its lanes; one that comes later, or blocks its key, keeps its order key.
    select l from fate cross join lateral unnest(case when kind = 'release' then null
      when kind in ('retry', 'snooze', 'wait') and ordered or blocks then fate.lanes[2:]
      else fate.lanes end) l
  ), held as (
    select gate, count(*)::int as n from (select gate from gone union all select stream_gate from gone) g
    where gate <> 0 group by gate
  )
  select (select array_agg(id) from fate), (select array_agg(l) from freed),
    (select array_agg(gate) from held), (select array_agg(n) from held),
    (select array_agg(id order by id) from fate where kind in ('fail', 'cancel')),
    (select array_agg(sluice.state_after(kind) order by id) from fate where kind in ('fail', 'cancel')),
    (select array_agg(id) from fate where kind = 'wait'),
    (select array_agg(distinct stream) from fate where kind = 'release'),
    (select array_agg(id) from fate where kind = 'retry')
  into settled, lanes, gates, gates_n, ended, ended_states, parents, v_back, v_retried;
  if gates is not null then select f.gates, f.n into gates, gates_n from sluice.slots_of(gates, gates_n) f; end if;
  if v_retried is not null then perform sluice.trim_attempts(v_retried); end if;
  delete from sluice.stop where id = any (ended);
  delete from sluice.crash where id = any (ended);
  perform sluice.tell_awaited(array(select distinct id from sluice.awaited where id = any (ended)));
  if v_back is not null then perform sluice.ring(v_back, cardinality(p_ids)); end if;
end $$;
