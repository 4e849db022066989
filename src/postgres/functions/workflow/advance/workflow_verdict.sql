-- How a run ends whose nodes are all over and of which one failed or was cancelled. A failure that a recovering branch has caught does not count.
create or replace function sluice.workflow_verdict(p_run bigint, p_graph int) returns "char" language plpgsql stable as $$
declare v_state "char";
begin
  select max(n.state::text) into v_state from sluice.workflow_node n where n.run = p_run and n.state in ('f', 'c')
    and not exists (select from sluice.workflow_step s cross join lateral unnest(s.deps, s.dep_on, s.dep_recovers) d(node, dep_on, recovers)
      join sluice.workflow_node x on x.run = p_run and x.node = s.node and x.state = 's'
      where s.graph = p_graph and d.node = n.node and d.dep_on = 'f' and d.recovers);
  return coalesce(v_state, 's');
end $$;
