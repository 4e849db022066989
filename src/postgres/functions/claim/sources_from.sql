-- sources for a worker whose looks take long, because some old snapshot keeps the rows alive that were claimed since:
-- each source is looked at from where its head was. What has come to stand before that is found by the next full look.
-- Gates of which this step has freed slots are looked at first, known or not.
create or replace function sluice.sources_from(p_spots sluice.spot[], p_streams int[], p_own_gates int[], p_own_n int[])
returns sluice.source[] language plpgsql as $$
begin
  return (select array_agg(z) from (
    select u.stream, u.gate, case when u.gate = s.gate or u.gate < 0 and s.gate = any (sluice.gates_of(u.gate)) then 0
      else s.gate end as stream_gate, h.rank, h.turn, h.id, v.room, v.stream_room
    from (
      select s.stream, o.gate, (-32768)::smallint as rank, 0::bigint as turn
      from unnest(p_own_gates[:8]) o(gate) cross join unnest(p_streams) s(stream)
      where not exists (select from unnest(p_spots) x where x.stream = s.stream and x.gate = o.gate)
      union all
      select * from unnest(p_spots)
    ) u
    cross join lateral (select st.gate from sluice.stream st where st.id = u.stream and not st.paused limit 1) s
    cross join lateral (
      (select r.rank, r.turn, r.id from sluice.ready r
        where u.gate = 0 and r.stream = u.stream and (r.rank, r.turn) >= (u.rank, u.turn)
        order by r.rank, r.turn limit 1)
      union all
      (select r.rank, r.turn, r.id from sluice.gated r
        where u.gate <> 0 and r.stream = u.stream and r.gate = u.gate and (r.rank, r.turn) >= (u.rank, u.turn)
        order by r.rank, r.turn limit 1)
    ) h
    cross join lateral (
      select case when u.gate = 0 then sluice.no_limit()
          else sluice.gate_room(u.gate, p_own_gates, p_own_n, h.id) end as room,
        case when s.gate = 0 then sluice.no_limit()
          else sluice.gate_room(s.gate, p_own_gates, p_own_n, h.id) end as stream_room) v
    where v.room > 0 and v.stream_room > 0
    limit 16) z);
end $$;
