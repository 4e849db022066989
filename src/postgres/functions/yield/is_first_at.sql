-- Returns whether no task waits at this total before one of this rank and turn.
create or replace function sluice.is_first_at(p_total int, p_rank smallint, p_turn bigint) returns boolean
language plpgsql stable set enable_seqscan = off set enable_bitmapscan = off set jit = off as $$
declare
  v_gates int[] := array[p_total] || array(
    select m.gate from sluice.gate_member m where m.total = p_total limit 1000);
begin
  return not exists (
    select
    from sluice.gate_stream gs
    cross join unnest(v_gates) x(gate)
    cross join lateral (
      select g.rank, g.turn from sluice.gated g
      where g.stream = gs.stream and g.gate = x.gate
      order by g.rank, g.turn
      limit 1) h
    where gs.gate = p_total and (h.rank, h.turn) < (p_rank, p_turn))
  and not exists (
    select
    from sluice.stream s
    cross join lateral (
      select r.rank, r.turn from sluice.ready r where r.stream = s.id order by r.rank, r.turn limit 1) h
    where s.gate = p_total and (h.rank, h.turn) < (p_rank, p_turn));
end $$;
