-- Returns tasks that need several totals, are first at all of them, and find at least one full. They may never find all
-- of them free at once, because other tasks use each total in turn. Examines at most 500 streams, and of each up to 64
-- kinds in both directions from one that the token decides.
create or replace function sluice.first_at_all(p_token bigint) returns table (id bigint, gates int[])
language plpgsql stable set enable_seqscan = off set enable_bitmapscan = off set jit = off as $$
declare
  v_start int := sluice.random_gate(p_token);
begin
  return query
  with recursive busy as (
    (select g.stream, 1 as n from sluice.gated g order by g.stream limit 1)
    union all
    select x.stream, b.n + 1
    from busy b
    cross join lateral (
      select g.stream from sluice.gated g where g.stream > b.stream order by g.stream limit 1) x
    where b.n < 500
  ), part as (
    -- A stream without a limit of its own has several totals only where the gate is a set.
    select b.stream, s.gate as stream_gate, t.low,
      least(t.high, case when s.gate > 0 then sluice.int_max() else -1 end) as high
    from busy b
    cross join lateral (select k.gate from sluice.stream k where k.id = b.stream limit 1) s
    cross join (values (v_start, sluice.int_max()), (sluice.int_min(), v_start - 1)) t(low, high)
  ), head as (
    select p.stream, p.stream_gate, h.gate, h.rank, h.turn, h.id
    from part p
    cross join lateral (
      with recursive kind as (
        (select g.gate, g.rank, g.turn, g.id, 1 as n
          from sluice.gated g
          where g.stream = p.stream and g.gate >= p.low and g.gate <= p.high
          order by g.gate, g.rank, g.turn
          limit 1)
        union all
        select x.gate, x.rank, x.turn, x.id, k.n + 1
        from kind k
        cross join lateral (
          select g.gate, g.rank, g.turn, g.id from sluice.gated g
          where g.stream = p.stream and g.gate > k.gate and g.gate <= p.high
          order by g.gate, g.rank, g.turn
          limit 1) x
        where k.n < 64
      )
      select k.gate, k.rank, k.turn, k.id from kind k) h
  )
  select h.id, t.gates
  from head h
  cross join lateral (
    select array(
      select distinct g from unnest(sluice.gates_of(h.gate) || h.stream_gate) g where g > 0 order by g) as gates) t
  where cardinality(t.gates) > 1
    and sluice.has_taker(h.stream, false)
    and exists (select from unnest(t.gates) g where sluice.gate_room(g, null, null, h.id) <= 0)
    and not exists (select from unnest(t.gates) g where not sluice.is_first_at(g, h.rank, h.turn));
end $$;
