-- How many slots of each of these gates the wanted tasks of all sources take.
create or replace function sluice.wants_of(p_gates int[], p_sources sluice.source[], p_wants int[]) returns int[]
language plpgsql stable as $$
begin
  return array(
    select coalesce(w.n, 0) from unnest(p_gates) with ordinality x(gate, i)
    left join (
      select y.gate, sum(u.k)::int as n
      from unnest(p_sources, p_wants) u(stream, gate, stream_gate, rank, turn, id, room, stream_room, k)
      cross join lateral unnest(sluice.gates_of(u.gate) || u.stream_gate) y(gate) where u.k > 0 group by y.gate) w
    on w.gate = x.gate order by x.i);
end $$;
