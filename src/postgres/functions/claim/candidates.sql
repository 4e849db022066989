-- The best candidates of all sources, in order: of each source at most p_depth, and none after the given place. Rows
-- that another transaction has locked are passed over: nobody can take them now.
-- guard: rivals: what is in hand cannot be taken -> test/postgres/turns.test.ts: "a slot is not left idle for another worker's task that an open transaction has locked"
create or replace function sluice.candidates(p_sources sluice.source[], p_depth int, p_rank smallint, p_turn bigint)
returns table (i bigint, rank smallint, turn bigint) language plpgsql as $$
begin
  return query
  select s.i, h.rank, h.turn
  from unnest(p_sources) with ordinality s(stream, gate, stream_gate, rank, turn, id, room, stream_room, i)
  cross join lateral (
    (select r.rank, r.turn from sluice.ready r
      where s.gate = 0 and r.stream = s.stream and (r.rank, r.turn) >= (s.rank, s.turn)
        and /* guard:in-hand */ (r.xmax = 0 or sluice.has_ended(r.xmax::text::bigint)) /* end */
      order by r.rank, r.turn limit least(p_depth, s.room, s.stream_room))
    union all
    (select r.rank, r.turn from sluice.gated r
      where s.gate <> 0 and r.stream = s.stream and r.gate = s.gate and (r.rank, r.turn) >= (s.rank, s.turn)
        and /* guard:in-hand */ (r.xmax = 0 or sluice.has_ended(r.xmax::text::bigint)) /* end */
      order by r.rank, r.turn limit least(p_depth, s.room, s.stream_room))) h
  -- Not in the scans: an index scan does not stop at a bound on two columns while the first is equal, and would walk a
  -- stream with fewer than that below the bound to its end.
  where (h.rank, h.turn) <= (p_rank, p_turn);
end $$;
