-- Counts parked tasks by stream and gate, at most p_most of each stream. id: the first of them.
create or replace function sluice.queue_parked(p_streams int[], p_most int)
returns table (stream int, gate int, n bigint, id bigint) language sql stable as $$
  select s.id, y.gate, count(*), min(y.id)
  from unnest(p_streams) s(id)
  cross join lateral (
    select p.gate, p.id from sluice.parked p
    where p.stream = s.id
    order by p.gate, p.rank, p.id
    limit p_most) y
  group by s.id, y.gate
$$;
