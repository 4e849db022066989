-- Claims a suspect for a worker that has reserved it and holds nothing else. Returns the task if its gates have room,
-- else no row. passed: as in step. Locks, in this order: the barrier, shared; the suspect's row, or skips it; its lanes
-- above their number; its gates.
create or replace function sluice.claim_suspect(p_worker bigint, p_claim bigint, p_id bigint)
returns table (id bigint, stream int, attempt smallint, input json, trace text, passed text, nonce bigint)
language plpgsql as $$
#variable_conflict use_column
declare
  v_gates int[];
  v_task sluice.task;
  v_stream_gate int;
begin
  perform sluice.barrier_shared();
  perform sluice.require_lease(p_worker);
  if exists (select from sluice.running r where r.worker = p_worker) then
    perform sluice.refuse('not_claimed', 'a suspect task runs alone, but this worker holds other tasks');
  end if;
  -- Before any other lock, and skipped: a cancel in a user's open transaction may hold it.
  perform 1 from sluice.suspect x where x.id = p_id and x.reserved_by = p_worker for update skip locked;
  if not found then return; end if;
  select * into v_task from sluice.task t where t.id = p_id;
  if exists (select from sluice.stream t where t.id = v_task.stream and t.paused) then return; end if;
  -- Above a lowered number only running tasks count: otherwise suspects of one key would wait for each other.
  perform 1 from sluice.lane n
  where n.id = any (v_task.lanes) and n.used > sluice.cap_of(n.cap, n.limit_id)
  order by n.id for update;
  if found and exists (
      select from sluice.lane n
      where n.id = any (v_task.lanes) and n.used > sluice.cap_of(n.cap, n.limit_id)
        and sluice.cap_of(n.cap, n.limit_id)
          <= (select count(*) from sluice.running r where r.lanes @> array[n.id])) then
    return;
  end if;
  select /* guard:one-gate */ case when gate = any (sluice.gates_of(v_task.gate)) then 0 else gate end /* end */
  into v_stream_gate
  from sluice.stream t where t.id = v_task.stream;
  v_gates := array(
    select distinct x from unnest(sluice.gates_of(v_task.gate) || v_stream_gate) x where x > 0 order by x);
  perform 1 from sluice.gate g where g.id = any (v_gates) order by g.id for update;
  if exists (select from unnest(v_gates) x where sluice.gate_room(x, null, null, p_id) <= 0) then return; end if;
  return query
  with taken as (
    delete from sluice.suspect x where x.id = p_id and x.reserved_by = p_worker returning *
  ), running as (
    insert into sluice.running (id, claim, worker, attempt, started_at, gate, stream_gate, lanes)
    select id, p_claim, p_worker, attempt + 1, sluice.clock(), v_task.gate, v_stream_gate, lanes from taken
  ), counted as (
    update sluice.gate g set used = used + 1, kept_for = nullif(kept_for, p_id)
    where g.id = any (v_gates) and exists (select from taken)
  )
  select t.id, t.stream, (t.attempt + 1)::smallint, v_task.input, v_task.trace,
    -- It was tried before and there is room now, so these gates are not what it waited for.
    sluice.passed(1::smallint, null, null,
      coalesce((select string_agg(',' || x || ',' || sluice.never_ms(), '') from unnest(v_gates) x), ''),
      v_task.lanes, null, v_task.lane_limits),
    v_task.nonce
  from taken t;
end $$;
