-- Returns the slots of limits, for metrics, of at most p_max limits. The limits of p_names come first, then those with
-- the most running tasks, then others by name. A limit per key appears as name/*, with the numbers of the key that uses
-- most. slots: null while the limit is lifted. waiting: tasks that wait at a full limit, counted up to 1,000.
-- What is read is bounded, so that a million limits, keys or tasks cost no more: 10,000 running tasks, 10,000 keys of a
-- limit, 1,000 sets of a total.
create or replace function sluice.limit_slots(p_names text[], p_max int)
returns table (name text, slots int, used int, waiting int)
language sql stable set enable_seqscan = off set enable_bitmapscan = off set jit = off as $$
  with running as materialized (
    select r.gate, r.stream_gate, count(*) as n
    from (select x.gate, x.stream_gate from sluice.running x limit 10000) r
    group by 1, 2
  ), fullest as materialized (
    select g.id, sum(r.n) as n
    from running r
    cross join lateral unnest(sluice.gates_of(r.gate) || r.stream_gate) g(id)
    where g.id > 0
    group by g.id
    order by 2 desc, 1
    limit p_max
  ), candidate as (
    select l.id, 1 as place, 0 as n from sluice.limits l where l.name = any (p_names)
    union all select f.id, 2, -f.n from fullest f
    union all select l.id, 3, 0 from (select x.id from sluice.limits x order by x.name limit p_max) l
  ), chosen as materialized (
    select l.*,
      coalesce(total_override, total_declared) as total,
      coalesce(per_key_override, per_key_declared) as per_key
    from (
      select c.id, min(c.place) as place, min(c.n) as n from candidate c group by c.id order by 2, 3, 1 limit p_max) c
    cross join lateral (select x.* from sluice.limits x where x.id = c.id limit 1) l
    order by c.place, c.n, l.name
  )
  select l.name::text, nullif(l.total, sluice.no_limit()), g.used,
    case when g.used < l.total then 0 else sluice.total_waiting(l.id) end
  from chosen l
  cross join lateral (
    select (k.used - coalesce((select sum(c.n) from sluice.credit c where c.gate = k.id), 0))::int as used
    from sluice.gate k where k.id = l.id) g
  where l.total is not null
  union all
  select l.name || '/*', nullif(l.per_key, sluice.no_limit()), k.used, k.waiting
  from chosen l
  cross join lateral sluice.key_slots(l.id, l.per_key) k
  where l.per_key is not null
$$;
