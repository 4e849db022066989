-- Returns what a task meets at a total, or null if the total is not full. p_turn: the task's place there, null if it is
-- not there yet. `before` counts all tasks that may take these slots first.
create or replace function sluice.explain_gate(p_task sluice.task, p_gate int, p_turn bigint) returns json
language plpgsql stable set enable_seqscan = off set enable_bitmapscan = off set jit = off as $$
declare
  v_cap int;
  v_used int := sluice.gate_used(p_gate);
  v_before int;
  v_gates int[];
begin
  select g.cap into v_cap from sluice.gate g where g.id = p_gate;
  -- A limit that was removed has no counter, and limits nothing.
  if v_cap is null or v_used < v_cap then return null; end if;
  if p_turn is not null then
    v_gates := array[p_gate] || array(select m.gate from sluice.gate_member m where m.total = p_gate limit 1000);
    v_before := (
      select count(*)
      from (
        select
        from sluice.gate_stream gs
        cross join unnest(v_gates) x(gate)
        cross join lateral (
          select from sluice.gated w
          where w.stream = gs.stream and w.gate = x.gate and (w.rank, w.turn) < (p_task.rank, p_turn)
          limit 10000) w
        where gs.gate = p_gate
        union all
        -- Of a type whose own limit it is, also tasks without totals and with others.
        select
        from sluice.stream s
        cross join lateral (
          (select from sluice.ready r
            where r.stream = s.id and (r.rank, r.turn) < (p_task.rank, p_turn)
            limit 10000)
          union all
          (select from sluice.gated w
            where w.stream = s.id and w.gate <> all (v_gates) and (w.rank, w.turn) < (p_task.rank, p_turn)
            limit 10000)) w
        where s.gate = p_gate
        limit 10000) x);
  end if;
  return json_build_object(
    'kind', 'limit', 'limit', (select l.name from sluice.limits l where l.id = p_gate), 'key', null,
    'slots', v_cap, 'used', v_used, 'before', v_before,
    'holders', coalesce((
      select json_agg(
        sluice.explain_holder(h.id, 'running', h.started_at, h.worker, false) order by h.started_at, h.id)
      from (
        select r.id, r.started_at, r.worker from sluice.running r
        where r.gate = p_gate
          or r.stream_gate = p_gate
          or r.gate < 0 and p_gate = any (sluice.gates_of(r.gate))
        order by r.started_at, r.id
        limit 10) h), '[]'));
end $$;
