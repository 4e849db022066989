-- sources where tasks wait at gates. Looks at four places of each stream: `ready`, the gates whose slots this step has
-- freed, other gates by a walk that starts at a random one, and the open kinds of a stream with many totals.
create or replace function sluice.sources_at_gates(p_streams int[], p_own_gates int[], p_own_n int[], p_token bigint)
returns sluice.source[] language plpgsql as $$
declare
  v_own int[] := coalesce(p_own_gates, '{}');
  -- Where to begin with those, too: at most 8, so that others are not left out for ever.
  v_turn int := 1 + p_token % greatest(1, cardinality(p_own_gates));
  v_from int := sluice.random_gate(p_token);
begin
  return (select array_agg(z) from (
    select u.stream, h.gate, case when h.gate = s.gate or h.gate < 0 and s.gate = any (sluice.gates_of(h.gate)) then 0
      else s.gate end as stream_gate, h.rank, h.turn, h.id, h.room, v.room as stream_room
    from unnest(p_streams) u(stream)
    cross join lateral (
      select st.gate, st.many from sluice.stream st
      where st.id = u.stream /* guard:paused */ and not st.paused /* end */ limit 1) s
    cross join lateral (
      (select 0 as gate, r.rank, r.turn, r.id, sluice.no_limit() as room from sluice.ready r
        where r.stream = u.stream order by r.rank, r.turn limit 1)
      union all
      (select o.gate, g.rank, g.turn, g.id, v.room from unnest(v_own[v_turn:] || v_own[:v_turn - 1]) o(gate)
        cross join lateral (
          select r.rank, r.turn, r.id from sluice.gated r
          where r.stream = u.stream and r.gate = o.gate order by r.rank, r.turn limit 1) g
        cross join lateral (select sluice.gate_room(o.gate, p_own_gates, p_own_n, g.id) as room) v
        where v.room > 0 limit 8)
      union all
      (select g.gate, g.rank, g.turn, g.id, v.room from (
          select * from (values (v_from, sluice.int_max()), (sluice.int_min(), v_from - 1)) t(low, high)
          where not s.many and exists (select from sluice.gated x where x.stream = u.stream)) walk
        cross join lateral (
          with recursive heads as (
            (select r.gate, r.rank, r.turn, r.id, 1 as n from sluice.gated r
              where r.stream = u.stream and r.gate >= walk.low and r.gate <= walk.high
              order by r.gate, r.rank, r.turn limit 1)
            union all
            select x.gate, x.rank, x.turn, x.id, h.n + 1 from heads h cross join lateral (
              select r.gate, r.rank, r.turn, r.id from sluice.gated r
              where r.stream = u.stream and r.gate > h.gate and r.gate <= walk.high
              order by r.gate, r.rank, r.turn limit 1) x where h.n < 64
          ) select * from heads) g
        cross join lateral (
          select case when g.gate = any (v_own) then 0
            else sluice.gate_room(g.gate, p_own_gates, p_own_n, g.id) end as room) v
        where v.room > 0)
      union all
      (select k.gate, k.rank, k.turn, k.id, k.room
        from sluice.open_kinds(u.stream, p_own_gates, p_own_n, p_token) k where s.many and k.gate <> all (v_own))
    ) h
    cross join lateral (
      select case when s.gate = 0 then sluice.no_limit()
        else sluice.gate_room(s.gate, p_own_gates, p_own_n, h.id) end as room) v
    where v.room > 0
    /* guard:every-gate */ limit /* end */ 16) z);
end $$;
