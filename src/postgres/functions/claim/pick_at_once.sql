-- Picks where no source has more than one total: a place in the total's line is all that counts.
create or replace function sluice.pick_at_once(p_n int, p_sources sluice.source[], p_own int, p_depth int,
  p_rank smallint, p_turn bigint, p_totals int[], p_gates int[], p_rooms int[],
  out wants int[], out taken int, out rank smallint, out turn bigint)
language plpgsql as $$
#variable_conflict use_column
begin
  with numbered as (
    select c.i, c.rank, c.turn, t.total,
      case when t.total = 0 then 0 else row_number() over (partition by t.total order by c.rank, c.turn) end as place
    from sluice.candidates(p_sources, p_depth, p_rank, p_turn) c
    cross join lateral (select p_totals[c.i] as total) t
  ), fits as (
    -- A limit that was removed has no counter, and limits nothing.
    select n.* from numbered n where n.place <= coalesce(p_rooms[array_position(p_gates, n.total)], sluice.no_limit())
  ), best as materialized (
    select f.i, f.rank, f.turn from fits f where f.i <= p_own
    order by f.rank, f.turn /* guard:order */ limit /* end */ p_n
  ), chosen as (
    select b.i from best b union all select f.i from fits f where f.i > p_own
  ), last as (
    select b.rank, b.turn from best b order by b.rank desc, b.turn desc limit 1
  )
  select array_agg(coalesce(k.n, 0) order by s.i), (select count(*) from best),
    (select l.rank from last l), (select l.turn from last l)
  into wants, taken, rank, turn
  from generate_subscripts(p_sources, 1) s(i)
  left join (select c.i, count(*)::int as n from chosen c group by c.i) k on k.i = s.i;
end $$;
