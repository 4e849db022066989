-- The nodes of one run that only code can place, for the client that has just started it.
create or replace function sluice.workflow_roots(p_run bigint)
returns table (run bigint, node smallint, stream int, total int, priority int, attempts int)
language sql stable as $$
  select u.run, u.node, u.stream, n.total, -s.rank, s.attempts::int
  from sluice.workflow_unplaced u
  join sluice.workflow_run r on r.id = u.run
  join sluice.workflow_node n on n.run = u.run and n.node = u.node
  join sluice.workflow_step s on s.graph = r.graph and s.node = u.node
  where u.run = p_run and u.in_code and n.state = 'placing'
  order by u.node
$$;
