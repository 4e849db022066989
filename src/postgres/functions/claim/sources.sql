-- The sources that have something to take, at most 16. own_*: slots that this step has just freed and may
-- use again; their gates are looked at first. Of a stream's other gates at most 128 are looked at, from
-- one that the random token decides. Those of a stream with many totals are found by open_kinds.
create or replace function sluice.sources(p_streams int[], p_own_gates int[], p_own_n int[], p_token bigint) returns sluice.source[]
language plpgsql /* settings: index plans */ as $$
declare
  v_sole sluice.source; v_from int; v_own int[] := coalesce(p_own_gates, '{}');
  -- Where to begin with those, too: at most 8, so that others are not left out for ever.
  v_turn int := 1 + p_token % greatest(1, cardinality(p_own_gates));
begin
  -- The life of one limited type: everything that waits stands at the gate of which this step has just freed slots.
  if cardinality(p_streams) = 1 and cardinality(p_own_gates) = 1 then
    select st.id, p_own_gates[1], 0, h.rank, h.turn, h.id, least(2147483647, /* guard:cap */ g.cap::bigint - g.used /* end */ + coalesce((select sum(c.n) from sluice.credit c where c.gate = g.id), 0) + p_own_n[1]), 2147483647
    into v_sole from sluice.stream st
    cross join lateral (select r.rank, r.turn, r.id from sluice.gated r where r.stream = st.id and r.gate = p_own_gates[1] order by r.rank, r.turn limit 1) h
    cross join lateral (select k.id, k.cap, k.used from sluice.gate k where k.id = p_own_gates[1] and k.kept_for is null limit 1) g
    where st.id = p_streams[1] /* guard:paused */ and not st.paused /* end */ and st.gate = any (array[0, p_own_gates[1]])
      and not exists (select from sluice.ready r where r.stream = p_streams[1])
      and not exists (select from sluice.gated r where r.stream = p_streams[1] and r.gate < p_own_gates[1])
      and not exists (select from sluice.gated r where r.stream = p_streams[1] and r.gate > p_own_gates[1]);
    if found then return case when v_sole.room > 0 then array[v_sole] end; end if;
  elsif cardinality(p_streams) = 1 and cardinality(p_own_gates) > 1 then
    v_sole := sluice.sole_source(p_streams[1], p_own_gates, p_own_n);
    if v_sole.stream is not null then
      return case when least(v_sole.room, v_sole.stream_room) > 0 then array[v_sole] end;
    end if;
  end if;
  if cardinality(p_streams) > 32 then p_streams := coalesce(sluice.busy_streams(p_streams), p_streams); end if;
  -- Where no task waits at a gate, the walk over gates is left out: it is most of what a look costs.
  if not exists (select from sluice.gated) then
    return (select array_agg(z) from (
      select u.stream, 0 as gate, s.gate as stream_gate, h.rank, h.turn, h.id, 2147483647 as room, v.room as stream_room from unnest(p_streams) u(stream)
      cross join lateral (select st.gate from sluice.stream st where st.id = u.stream /* guard:paused */ and not st.paused /* end */ limit 1) s
      cross join lateral (select r.rank, r.turn, r.id from sluice.ready r where r.stream = u.stream order by r.rank, r.turn limit 1) h
      cross join lateral (select case when s.gate = 0 then 2147483647 else sluice.gate_room(s.gate, p_own_gates, p_own_n, h.id) end as room) v
      where v.room > 0 limit 16) z);
  end if;
  v_from := sluice.turn_of(p_token);
  return (select array_agg(z) from (
    select u.stream, h.gate, case when h.gate = s.gate or h.gate < 0 and s.gate = any (sluice.gates_of(h.gate)) then 0 else s.gate end as stream_gate, h.rank, h.turn, h.id, h.room, v.room as stream_room
    from unnest(p_streams) u(stream)
    cross join lateral (select st.gate, st.many from sluice.stream st where st.id = u.stream /* guard:paused */ and not st.paused /* end */ limit 1) s
    cross join lateral (
      (select 0 as gate, r.rank, r.turn, r.id, 2147483647 as room from sluice.ready r where r.stream = u.stream order by r.rank, r.turn limit 1)
      union all
      (select o.gate, g.rank, g.turn, g.id, v.room from unnest(v_own[v_turn:] || v_own[:v_turn - 1]) o(gate)
        cross join lateral (select r.rank, r.turn, r.id from sluice.gated r where r.stream = u.stream and r.gate = o.gate order by r.rank, r.turn limit 1) g
        cross join lateral (select sluice.gate_room(o.gate, p_own_gates, p_own_n, g.id) as room) v
        where v.room > 0 limit 8)
      union all
      (select g.gate, g.rank, g.turn, g.id, v.room from (select * from (values (v_from, 2147483647), (-2147483648, v_from - 1)) t(low, high) where not s.many and exists (select from sluice.gated x where x.stream = u.stream)) turn cross join lateral (
        with recursive heads as (
          (select r.gate, r.rank, r.turn, r.id, 1 as n from sluice.gated r where r.stream = u.stream and r.gate >= turn.low and r.gate <= turn.high order by r.gate, r.rank, r.turn limit 1)
          union all
          select x.gate, x.rank, x.turn, x.id, h.n + 1 from heads h cross join lateral (
            select r.gate, r.rank, r.turn, r.id from sluice.gated r where r.stream = u.stream and r.gate > h.gate and r.gate <= turn.high order by r.gate, r.rank, r.turn limit 1) x
          where h.n < 64
        ) select * from heads) g
        cross join lateral (select case when g.gate = any (v_own) then 0 else sluice.gate_room(g.gate, p_own_gates, p_own_n, g.id) end as room) v
        where v.room > 0)
      union all
      (select k.gate, k.rank, k.turn, k.id, k.room from sluice.open_kinds(u.stream, p_own_gates, p_own_n, p_token) k
        where s.many and k.gate <> all (v_own))
    ) h
    cross join lateral (select case when s.gate = 0 then 2147483647 else sluice.gate_room(s.gate, p_own_gates, p_own_n, h.id) end as room) v
    where v.room > 0
    /* guard:every-gate */ limit /* end */ 16) z);
end $$;
