-- The nodes that a retry of this run begins with: those that failed or were cancelled, but for failures that a
-- recovering branch has caught. The caller holds the run's lock. Runs under the settings of workflow_retry.
create or replace function sluice.workflow_retry_seeds(p_run bigint, p_graph int) returns smallint[]
language plpgsql as $$
begin
  return array(
    select n.node
    from sluice.workflow_node n
    where n.run = p_run and sluice.workflow_is_unsuccessful(n.state)
      and not exists (
        select
        from sluice.workflow_step s
        cross join lateral unnest(s.deps, s.dep_on, s.dep_recovers) d(node, dep_on, recovers)
        join sluice.workflow_node x on x.run = p_run and x.node = s.node and x.state = 'succeeded'
        where s.graph = p_graph and d.node = n.node and d.dep_on = 'failure' and d.recovers)
    order by n.node);
end $$;
