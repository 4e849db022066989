-- How a run ends when all its nodes are over and at least one failed or was cancelled. A failure that a recovering
-- branch has caught does not count. Returns the run's state.
create or replace function sluice.workflow_verdict(p_run bigint, p_graph int) returns "char"
language plpgsql stable as $$
declare v_state "char";
begin
  select max(n.state::text) into v_state
  from sluice.workflow_node n
  where n.run = p_run and sluice.workflow_is_unsuccessful(n.state)
    and not exists (
      select
      from sluice.workflow_step s
      cross join lateral unnest(s.deps, s.dep_on, s.dep_recovers) d(node, dep_on, recovers)
      join sluice.workflow_node x on x.run = p_run and x.node = s.node and x.state = 's'
      where s.graph = p_graph and d.node = n.node and d.dep_on = 'f' and d.recovers);
  return coalesce(v_state, 's');
end $$;
