-- The sources that have something to take, at most 16. p_own_*: slots that this step has just freed and may use again;
-- their gates are looked at first. Of a stream's other gates at most 128 are looked at, from one that the random token
-- decides. Those of a stream with many totals are found by open_kinds.
create or replace function sluice.sources(p_streams int[], p_own_gates int[], p_own_n int[], p_token bigint)
returns sluice.source[] language plpgsql as $$
declare v_sole sluice.source;
begin
  -- The life of one limited type: all that waits stands at the gate of which this step has just freed slots.
  if cardinality(p_streams) = 1 and p_own_gates is not null then
    if cardinality(p_own_gates) = 1 then
      v_sole := sluice.sole_gated(p_streams[1], p_own_gates[1], p_own_n[1]);
    else
      v_sole := sluice.sole_source(p_streams[1], p_own_gates, p_own_n);
    end if;
    if v_sole.stream is not null then
      return case when least(v_sole.room, v_sole.stream_room) > 0 then array[v_sole] end;
    end if;
  end if;
  if cardinality(p_streams) > 32 then p_streams := coalesce(sluice.busy_streams(p_streams), p_streams); end if;
  if exists (select from sluice.gated) then
    return sluice.sources_at_gates(p_streams, p_own_gates, p_own_n, p_token);
  end if;
  -- Where no task waits at a gate, the walk over gates is left out: it is most of what a look costs.
  return (select array_agg(z) from (
    select u.stream, 0 as gate, s.gate as stream_gate, h.rank, h.turn, h.id,
      sluice.no_limit() as room, v.room as stream_room
    from unnest(p_streams) u(stream)
    cross join lateral (
      select st.gate from sluice.stream st
      where st.id = u.stream /* guard:paused */ and not st.paused /* end */ limit 1) s
    cross join lateral (
      select r.rank, r.turn, r.id from sluice.ready r where r.stream = u.stream order by r.rank, r.turn limit 1) h
    cross join lateral (
      select case when s.gate = 0 then sluice.no_limit()
        else sluice.gate_room(s.gate, p_own_gates, p_own_n, h.id) end as room) v
    where v.room > 0 limit 16) z);
end $$;
