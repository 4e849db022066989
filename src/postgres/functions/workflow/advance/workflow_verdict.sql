-- How a run ends when all its nodes are over and at least one failed or was cancelled. A failure that a recovering
-- branch has caught does not count. Returns the run's state.
create or replace function sluice.workflow_verdict(p_run bigint, p_graph int) returns sluice.state
language plpgsql stable as $$
declare v_state sluice.state;
begin
  -- The first in the order of the type: one failure counts more than any number of cancelled nodes.
  select min(n.state) into v_state
  from sluice.workflow_node n
  where n.run = p_run and sluice.workflow_is_unsuccessful(n.state)
    and not exists (
      select
      from sluice.workflow_step s
      cross join lateral unnest(s.deps, s.dep_on, s.dep_recovers) d(node, dep_on, recovers)
      join sluice.workflow_node x on x.run = p_run and x.node = s.node and x.state = 'succeeded'
      where s.graph = p_graph and d.node = n.node and d.dep_on = 'failure' and d.recovers);
  return coalesce(v_state, 'succeeded');
end $$;
