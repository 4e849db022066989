-- Settle: record an outcome. Every one deletes the run row by (id, claim) and by nothing less:
-- whoever lost the claim deletes nothing and so records nothing.

create function sluice.require_lease(p_worker bigint) returns void language plpgsql as $$
begin
  -- guard: lease -> test/postgres/attacks.test.ts: "attack 10: an unregistered or expired worker can neither claim nor settle"
  if not exists (select from sluice.worker where id = p_worker and expires_at > sluice.clock()) then
    perform sluice.refuse('lease_lost', 'this worker is not registered, or its lease has run out');
  end if;
end $$;

-- Succeeded. Returns what was freed; who owns the transaction decides what becomes of it.
-- p_results: JSON texts split by U+001E, '' for none; null: none has one. Without p_keep the task
-- leaves no trace, unless somebody waits for it. p_noted: somebody may wait for one of them, or want it to
-- stop, or it was in hand at a crash.
create function sluice.settle_succeeded(p_ids bigint[], p_claims bigint[], p_results text, p_keep boolean, p_noted boolean default true,
  out settled bigint[], out lanes bigint[], out gates int[], out gates_n int[])
language plpgsql set enable_seqscan = off set enable_bitmapscan = off set plan_cache_mode = force_generic_plan set jit = off as $$
declare
  v_results text[] := string_to_array(p_results, E'\x1e', ''); v_awaited bigint[]; v_told bigint[];
  v_any_awaited boolean; v_any_flow boolean; v_any_stop boolean; v_any_crash boolean; v_run sluice.run; v_gates int[]; v_stream_gates int[];
begin
  if p_noted then
    select exists (select from sluice.awaited), exists (select from sluice.stop), exists (select from sluice.crash),
      not p_keep and exists (select from sluice.workflow_active)
    into v_any_awaited, v_any_stop, v_any_crash, v_any_flow;
  end if;
  if v_any_awaited then
    v_awaited := array(select a.id from unnest(p_ids) u(id) cross join lateral (select id from sluice.awaited where id = u.id limit 1) a);
    v_told := v_awaited;
  end if;
  if v_any_flow then
    -- What belongs to a run is kept as long as the run: others are rendered from it.
    -- guard: members are kept -> test/postgres/workflow/keep.test.ts: "with history off the results of a run are kept while it lives"
    v_awaited := v_awaited || array(select w.id from unnest(p_ids) u(id) cross join lateral (select id from sluice.workflow_task where id = u.id limit 1) w);
  end if;
  if cardinality(p_ids) <= 4 then
    -- A few: plain statements cost less to begin than one that does it all.
    for i in 1..cardinality(p_ids) loop
      -- guard: fence of a few -> test/postgres/attacks.test.ts: "attack 2: the same id twice in one batch settles once, under its own claim"
      delete from sluice.run r where r.id = p_ids[i] and r.claim = p_claims[i] returning * into v_run;
      continue when not found;
      if p_keep or v_run.id = any (v_awaited) then
        insert into sluice.done (id, state, attempt, worker, started_at, finished_at, outcome)
        values (v_run.id, 's', v_run.attempt, v_run.worker, v_run.started_at, sluice.clock(), v_results[i]::json);
      else
        delete from sluice.task t where t.id = v_run.id;
      end if;
      settled := settled || v_run.id;
      lanes := lanes || v_run.lanes;
      -- Of one type all have the same gates.
      if v_run.gate <> 0 then
        if gates[1] = v_run.gate then gates_n[1] := gates_n[1] + 1; else gates := gates || v_run.gate; gates_n := gates_n || 1; end if;
      end if;
      if v_run.stream_gate <> 0 then
        if gates[1] = v_run.stream_gate then gates_n[1] := gates_n[1] + 1; else gates := gates || v_run.stream_gate; gates_n := gates_n || 1; end if;
      end if;
    end loop;
  elsif v_results is null and coalesce(v_awaited, '{}') = '{}' then
    -- Nothing to keep but that it succeeded: less to begin, and no results to find again.
    with gone as (
      delete from sluice.run where ctid = any (array(
        -- guard: fence of successes without a result -> test/postgres/attacks.test.ts: "attack 2: the same id twice in one batch settles once, under its own claim"
        select x.tid from unnest(p_ids, p_claims) v(id, claim) cross join lateral (select r.ctid as tid from sluice.run r where r.id = v.id and r.claim = v.claim limit 1) x))
      returning *
    ), history as (
      insert into sluice.done (id, state, attempt, worker, started_at, finished_at)
      select id, 's', attempt, worker, started_at, sluice.clock() from gone where p_keep
    )
    select array_agg(id), (select array_agg(l) from gone, unnest(gone.lanes) l), array_agg(gate), array_agg(stream_gate)
    into settled, lanes, v_gates, v_stream_gates from gone;
    if not p_keep then delete from sluice.task where id = any (settled); end if;
  else
    with outcome as materialized (
      select u.id, u.claim, u.result, x.tid from unnest(p_ids, p_claims, v_results) u(id, claim, result)
      -- guard: fence -> test/postgres/attacks.test.ts: "attack 2: the same id twice in one batch settles once, under its own claim"
      cross join lateral (select r.ctid as tid from sluice.run r where r.id = u.id and r.claim = u.claim limit 1) x
    ), gone as (
      delete from sluice.run where ctid = any (array(select tid from outcome)) returning *
    ), history as (
      insert into sluice.done (id, state, attempt, worker, started_at, finished_at, outcome)
      select g.id, 's', g.attempt, g.worker, g.started_at, sluice.clock(), o.result::json
      from gone g left join (select distinct on (id) id, result from outcome where v_results is not null) o on o.id = g.id
      where p_keep or g.id = any (v_awaited)
    ), forgotten as (
      delete from sluice.task where id = any (array(select id from gone where not p_keep and id <> all (coalesce(v_awaited, '{}'))))
    )
    select array_agg(id), (select array_agg(l) from gone, unnest(gone.lanes) l), array_agg(gate), array_agg(stream_gate)
    into settled, lanes, v_gates, v_stream_gates from gone;
  end if;
  if v_gates is not null then
    -- Of one type all have the same gates, mostly none.
    if v_gates[1] = all (v_gates) and v_stream_gates[1] = all (v_stream_gates) then
      gates := array_remove(array[v_gates[1], v_stream_gates[1]], 0);
      gates_n := array_fill(cardinality(settled), array[cardinality(gates)]);
    else
      gates := v_gates || v_stream_gates;
      gates_n := array_fill(1, array[cardinality(gates)]);
    end if;
    if gates = '{}' then gates := null; gates_n := null; end if;
  end if;
  if cardinality(gates) > 1 or gates[1] < 0 then select f.gates, f.n into gates, gates_n from sluice.slots_of(gates, gates_n) f; end if;
  if v_told <> '{}' then perform sluice.tell_awaited(v_told); end if;
  if v_any_stop then delete from sluice.stop where id = any (settled); end if;
  if v_any_crash then delete from sluice.crash where id = any (settled); end if;
end $$;

create function sluice.tell_awaited(p_ids bigint[]) returns void language plpgsql as $$
begin
  perform pg_notify('sluice', 'done:' || id) from unnest(p_ids) id;
end $$;

create function sluice.give_back(p_gates int[], p_n int[]) returns void language plpgsql as $$
begin
  insert into sluice.credit (gate, n) select * from unnest(p_gates, p_n);
  perform sluice.note_returned(p_gates);
end $$;

-- Every other outcome, one letter each: r retry after p_delays ms, f final failure, c cancelled,
-- z snooze (no attempt used), b handed back (no attempt used), w waits for its children: its outcome is the list
-- of their runs (no attempt used), i its input is not what it takes: a retry, but for good if the input was
-- rendered from the outputs of others, which stay what they are. A retry or snooze keeps the slot of
-- its order key and gives the others back; a task handed back keeps all its narrow slots.
-- Returns the ids that were still ours.
create function sluice.settle(p_worker bigint, p_ids bigint[], p_claims bigint[], p_kinds text[], p_delays bigint[], p_outcomes text)
returns bigint[] language plpgsql set lock_timeout = '2s' as $$
declare v record;
begin
  perform sluice.barrier_shared();
  perform sluice.require_lease(p_worker);
  select * into v from sluice.settle_others(p_ids, p_claims, p_kinds, p_delays, p_outcomes);
  if v.slept is not null or v.ended is not null and exists (select from sluice.workflow_active) then
    perform sluice.workflow_ended_elsewhere(v.ended, v.ended_states, v.slept);
  end if;
  if v.gates is not null then perform sluice.give_back(v.gates, v.gates_n); end if;
  if v.lanes is not null then perform sluice.ring_streams(sluice.admit(v.lanes, null, null, null)); end if;
  -- One that claims no more cannot look itself, and slots of totals may be of use to other workers.
  if v.gates is not null then
    perform sluice.ring(w.streams, cardinality(p_ids)) from sluice.worker w where w.id = p_worker and w.draining;
    perform sluice.ring_streams((sluice.rivals(v.gates, w.streams)).streams) from sluice.worker w where w.id = p_worker;
  end if;
  return v.settled;
end $$;

create function sluice.settle_others(p_ids bigint[], p_claims bigint[], p_kinds text[], p_delays bigint[], p_outcomes text,
  out settled bigint[], out lanes bigint[], out gates int[], out gates_n int[], out ended bigint[], out ended_states "char"[], out slept bigint[])
language plpgsql set enable_seqscan = off set enable_bitmapscan = off set plan_cache_mode = force_generic_plan set jit = off as $$
declare v_outcomes text[] := string_to_array(p_outcomes, E'\x1e', ''); v_back int[]; v_now timestamptz := sluice.clock();
begin
  with outcome as materialized (
    select distinct on (u.id) u.id, case when u.kind <> 'i' then u.kind
        when exists (select from sluice.workflow_task w join sluice.workflow_run k on k.id = w.run and k.graph is not null where w.id = u.id) then 'f' else 'r' end as kind,
      u.delay_ms, u.outcome::json, x.tid from unnest(p_ids, p_claims, p_kinds, p_delays, v_outcomes) u(id, claim, kind, delay_ms, outcome)
    cross join lateral (select r.ctid as tid from sluice.run r where r.id = u.id and r.claim = u.claim limit 1) x
  ), gone as (
    delete from sluice.run where ctid = any (array(select tid from outcome)) returning *
  ), fate as materialized (
    select g.*, o.outcome as told, o.delay_ms, t.stream, t.rank, t.gate as task_gate, t.lane_limits,
      -- Asked to stop while it ran: whatever else happened, it does not run again.
      case when o.kind in ('r', 'z', 'b', 'w') and exists (select from sluice.stop s where s.id = g.id) then 'c'
           when o.kind = 'r' and g.attempt >= t.attempts_max then 'f' else o.kind end as kind,
      o.kind in ('r', 'z', 'b', 'w') and exists (select from sluice.stop s where s.id = g.id) as asked,
      coalesce(t.lanes[1] >> 60 = 1, false) as ordered,
      exists (select from sluice.crash c where c.id = g.id and cardinality(c.workers) >= 3) as suspect
    from gone g join outcome o on o.id = g.id
    cross join lateral (select * from sluice.task where id = g.id limit 1) t
  ), to_scheduled as (
    insert into sluice.scheduled (id, run_at, attempt, held)
    select id, v_now + delay_ms * interval '1 millisecond', case when kind = 'r' then attempt else attempt - 1 end, ordered::int from fate where kind in ('r', 'z')
  ), to_parent as (
    insert into sluice.parent (id, attempt, held, runs) select id, attempt - 1, ordered::int, array(select json_array_elements_text(told)::bigint) from fate where kind = 'w'
  ), to_ready as (
    insert into sluice.ready (id, stream, rank, attempt, turn, lanes) select id, stream, rank, attempt - 1, sluice.own_turn(id), fate.lanes from fate where kind = 'b' and task_gate = 0 and not suspect
  ), to_gated as (
    insert into sluice.gated (id, stream, gate, rank, attempt, turn, lanes) select id, stream, task_gate, rank, attempt - 1, sluice.own_turn(id), fate.lanes from fate where kind = 'b' and task_gate <> 0 and not suspect
  ), to_suspect as (
    insert into sluice.suspect (id, stream, attempt, lanes) select id, stream, attempt - 1, fate.lanes from fate where kind = 'b' and suspect
  ), in_doubt as (
    -- It ran alone and did not kill its worker. Should it be in hand at one more crash, it is a suspect again and not yet guilty.
    update sluice.crash c set workers = c.workers[:2] from fate where c.id = fate.id and suspect and kind in ('r', 'z', 'w')
  ), blocked as (
    insert into sluice.block (id, lane) select id, fate.lanes[1] from fate where kind = 'f' and lane_limits[1] = -1
  ), history as (
    insert into sluice.done (id, state, attempt, worker, started_at, finished_at, outcome)
    select id, kind::"char", attempt, worker, started_at, v_now,
      case when asked then json_build_object('reason', (select s.reason from sluice.stop s where s.id = fate.id limit 1)) else told end
    from fate where kind in ('f', 'c')
  ), held as (
    select gate, count(*)::int as n from (select gate from gone union all select stream_gate from gone) g where gate <> 0 group by gate
  )
  select (select array_agg(id) from fate),
    (select array_agg(l) from fate, unnest(case when kind = 'b' then null when kind in ('r', 'z', 'w') and ordered or kind = 'f' and lane_limits[1] = -1 then fate.lanes[2:] else fate.lanes end) l),
    (select array_agg(gate) from held), (select array_agg(n) from held),
    (select array_agg(id order by id) from fate where kind in ('f', 'c')), (select array_agg(kind::"char" order by id) from fate where kind in ('f', 'c')),
    (select array_agg(id) from fate where kind = 'w'), (select array_agg(distinct stream) from fate where kind = 'b')
  into settled, lanes, gates, gates_n, ended, ended_states, slept, v_back;
  if gates is not null then select f.gates, f.n into gates, gates_n from sluice.slots_of(gates, gates_n) f; end if;
  delete from sluice.stop where id = any (ended);
  delete from sluice.crash where id = any (ended);
  perform sluice.tell_awaited(array(select distinct id from sluice.awaited where id = any (ended)));
  if v_back is not null then perform sluice.ring(v_back, cardinality(p_ids)); end if;
end $$;

-- Inside a user's transaction (ctx.transaction): fences and leaves notes; no barrier, no lane lock.
create function sluice.settle_in_transaction(p_worker bigint, p_id bigint, p_claim bigint, p_result text, p_keep boolean) returns boolean language plpgsql as $$
declare v record;
begin
  perform sluice.require_lease(p_worker);
  select * into v from sluice.settle_succeeded(array[p_id], array[p_claim], p_result, p_keep);
  -- No barrier here, so set_stream_gate may have moved the row while we waited for it: look again.
  if v.settled is null then select * into v from sluice.settle_succeeded(array[p_id], array[p_claim], p_result, p_keep); end if;
  if v.settled is null then perform sluice.refuse('lease_lost', 'this task is no longer ours to complete'); end if;
  if v.gates is not null then perform sluice.give_back(v.gates, v.gates_n); end if;
  insert into sluice.dirty (lane, limit_id, freed) select l, 0, 1 from unnest(v.lanes) l;
  -- guard: a completion in a user's transaction leaves a note -> test/postgres/workflow/notes.test.ts: "a completion inside a transaction advances its run after the commit"
  insert into sluice.workflow_note (id, run) select id, run from sluice.workflow_task where id = p_id;
  -- What comes now is the commit. If it does not, because the connection died and the server does not know
  -- it yet, the task and its slots must not stay in this transaction's hand for hours.
  -- guard: a completion does not stay open -> test/postgres/attacks.test.ts: "a completion that is never committed does not keep its task"
  if current_setting('idle_in_transaction_session_timeout') = '0' or current_setting('idle_in_transaction_session_timeout')::interval > interval '10 s' then perform set_config('idle_in_transaction_session_timeout', '10s', true); end if;
  return true;
end $$;
