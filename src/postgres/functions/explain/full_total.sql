-- Returns the first full total of a task, if there is one. Each is looked up by its id: there may be thousands.
create or replace function sluice.full_total(p_gate int, p_stream_gate int)
returns table (id int, cap int, used int) language sql stable as $$
  select g.*
  from unnest(sluice.gates_of(p_gate) || p_stream_gate) u(id)
  cross join lateral (
    select k.id, k.cap,
      (k.used - coalesce((select sum(c.n) from sluice.credit c where c.gate = k.id), 0))::int as used
    from sluice.gate k
    where k.id = u.id
    limit 1) g
  where g.used >= g.cap
  order by g.id
  limit 1
$$;
