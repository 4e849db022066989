-- Dead workers lose their row, then everything whose worker has no row comes back, keeping its narrow
-- slots and its attempts. Also what a dead worker's cut-off claim committed later. Safe for any
-- number of processes at once: rows are skipped when another reaper has them.
create or replace function sluice.reap(out workers int, out tasks int, out poisoned int) language plpgsql set jit = off as $$
declare v_now timestamptz := sluice.clock(); v_streams int[]; v_poisoned bigint[]; v_states "char"[]; v_totals int[];
begin
  -- Further ahead than any lease reaches: the clock was set back. A live worker's next heartbeat says the same; a dead one's
  -- tasks would wait until the clock has caught up.
  -- guard: a clock that was set back -> test/postgres/clock.test.ts: "after the clock was set back a dead worker's lease ends within a lease"
  update sluice.worker set expires_at = v_now + lease_ms * interval '1 millisecond' where id = any (array(
    select id from sluice.worker where /* guard:clock */ expires_at /* end */ > v_now + (lease_ms + 1000) * interval '1 millisecond' for update skip locked));
  delete from sluice.worker where id = any (array(select id from sluice.worker where expires_at <= v_now for update skip locked));
  get diagnostics workers = row_count;
  with gone as (
    delete from sluice.running where ctid = any (array(
      select r.ctid from sluice.running r where /* guard:gone */ not exists (select from sluice.worker w where w.id = r.worker) /* end */ for update of r /* guard:locked */ skip locked /* end */)) returning *
  ), unblamed as materialized (
    -- Died while it ran the user's code to place a node of a run: then no task in hand is to blame.
    select w.worker from (select distinct worker from gone) w
    where exists (select from sluice.workflow_trying t where t.worker = w.worker)
      or exists (select from sluice.workflow_unplaced u where u.died <> '{}' and u.died @> array[w.worker])
  ), crashed as (
    -- guard: who places a node may be to blame -> test/postgres/workflow/place.test.ts: "tasks in hand of a worker that died while it placed a node are not blamed"
    insert into sluice.crash as c (id, workers)
    select id, array[worker] from gone /* guard:placer */ where worker not in (select p.worker from unblamed p) /* end */ order by id
    on conflict (id) do update set workers = c.workers || excluded.workers returning c.id, cardinality(c.workers) as times
  ), fate as materialized (
    select g.*, t.stream, t.rank, t.gate as task_gate, t.lane_limits, c.times,
      case when exists (select from sluice.stop s where s.id = g.id) then 'c' when c.times > 3 then /* guard:suspect */ 'f' /* end */ when c.times = 3 then 'suspect' else 'b' end as kind
    from gone g left join crashed k on k.id = g.id cross join lateral (select * from sluice.task where id = g.id limit 1) t
    cross join lateral (select coalesce(k.times, (select cardinality(h.workers) from sluice.crash h where h.id = g.id), 0) as times) c
  ), to_ready as (
    insert into sluice.ready (id, stream, rank, attempt, turn, lanes) select id, stream, rank, attempt /* guard:attempt */ - 1 /* end */, sluice.own_turn(id), lanes from fate where kind = 'b' and task_gate = 0
  ), to_gated as (
    insert into sluice.gated (id, stream, gate, rank, attempt, turn, lanes) select id, stream, task_gate, rank, attempt /* guard:attempt */ - 1 /* end */, sluice.own_turn(id), lanes from fate where kind = 'b' and task_gate <> 0
  ), to_suspect as (
    insert into sluice.suspect (id, stream, attempt, lanes) select id, stream, attempt - 1, lanes from fate where kind = 'suspect'
  ), blocked as (
    insert into sluice.block (id, lane) select id, lanes[1] from fate where kind = 'f' and lane_limits[1] = -1
  ), history as (
    insert into sluice.done (id, state, attempt, worker, started_at, finished_at, outcome)
    select id, kind::"char", attempt, worker, started_at, v_now,
      case when kind = 'f' then json_build_object('name', 'SluiceError', 'code', 'poisoned', 'message', 'its worker died or lost its lease ' || times || ' times with this task in hand, the last time with nothing else; a handler that blocks the event loop loses the lease too')
        else json_build_object('reason', (select s.reason from sluice.stop s where s.id = fate.id limit 1)) end
    from fate where kind in ('f', 'c')
  ), credits as (
    insert into sluice.credit (gate, n) select x.gate, count(*) from gone cross join lateral unnest(sluice.gates_of(gone.gate) || gone.stream_gate) x(gate) where x.gate <> 0 group by x.gate
    returning gate
  ), frees as (
    insert into sluice.dirty (lane, limit_id, freed) select l, 0, count(*) from fate, unnest(case when kind = 'f' and lane_limits[1] = -1 then lanes[2:] else lanes end) l
    where kind in ('f', 'c') group by l
  )
  select count(*), count(*) filter (where kind = 'f'), array_agg(distinct stream), array_agg(id order by id) filter (where kind in ('f', 'c')), array_agg(kind::"char" order by id) filter (where kind in ('f', 'c')),
    (select array_agg(gate) from credits)
  into tasks, poisoned, v_streams, v_poisoned, v_states, v_totals from fate;
  if v_totals is not null then perform sluice.note_returned(v_totals); end if;
  if v_poisoned is not null then
    delete from sluice.stop where id = any (v_poisoned);
    delete from sluice.crash where id = any (v_poisoned);
    perform sluice.tell_awaited(array(select distinct id from sluice.awaited where id = any (v_poisoned)));
    if exists (select from sluice.workflow_run where finished_at is null) then perform sluice.workflow_ended_elsewhere(v_poisoned, v_states); end if;
  end if;
  perform sluice.ring(array[x], tasks) from unnest(v_streams) x;
end $$;
