-- How many to take of each source, so that the p_n best are taken and no total is asked for more than its room: slots
-- of a total go to the first by (rank, turn), across types, sets of totals and workers. The last p_rivals
-- sources belong to other workers: what they would get is left for them, and returned too. p_gates, p_rooms: the
-- totals, ascending, and their slots.
create or replace function sluice.pick(p_n int, p_sources sluice.source[], p_rivals int, p_gates int[], p_rooms int[])
returns int[] language plpgsql as $$
declare
  v_m int := cardinality(p_sources); v_own int := v_m - p_rivals;
  -- First look at 2n/m of each source; only if one is used up to its end look at n of each.
  v_depth int := least(p_n, (2 * p_n + v_m - 1) / v_m);
  -- Later than any task.
  v_rank smallint := 32767; v_turn bigint := 9223372036854775807;
  v_wants int[]; v_totals int[]; v_end record; v_several boolean := false;
begin
  -- For each source its only total, or -1 if it has several.
  for i in 1..v_m loop
    v_totals[i] := case when p_sources[i].gate < 0 or p_sources[i].gate > 0 and p_sources[i].stream_gate > 0 then -1
      else p_sources[i].gate + p_sources[i].stream_gate end;
    v_several := v_several or v_totals[i] < 0;
  end loop;
  loop
    if v_several then
      select * into v_end
      from sluice.pick_one_by_one(p_n, p_sources, v_own, v_depth, v_rank, v_turn, p_gates, p_rooms);
    else
      select * into v_end
      from sluice.pick_at_once(p_n, p_sources, v_own, v_depth, v_rank, v_turn, v_totals, p_gates, p_rooms);
    end if;
    v_wants := v_end.wants;
    exit when v_depth >= p_n or not exists (
      select from unnest(v_wants, p_sources) u(k, stream, gate, stream_gate, rank, turn, id, room, stream_room)
      where k >= v_depth and v_depth < least(room, stream_room));
    v_depth := p_n;
    if v_end.taken >= p_n then v_rank := v_end.rank; v_turn := v_end.turn; end if;
  end loop;
  return v_wants;
end $$;
