-- Leaves the tasks that a retry of this run, or of this node of it, has not brought back yet as they were, and counts
-- them so. The caller holds the run's lock, and checks whether the node is over by it. Returns the nodes.
create or replace function sluice.workflow_abandon_retry(p_run bigint, p_node smallint default null) returns smallint[]
language plpgsql /* settings: index plans */ as $$
declare v_nodes smallint[];
begin
  with gone as (
    delete from sluice.workflow_again a where a.run = p_run and (p_node is null or a.node = p_node) returning *
  ), counted as (
    update sluice.workflow_node n
    set failed = n.failed + g.failed,
      cancelled = n.cancelled + g.cancelled,
      outcome = coalesce(n.outcome, g.outcome)
    from gone g where n.run = g.run and n.node = g.node
    returning n.node
  )
  select array_agg(node) into v_nodes from counted;
  return v_nodes;
end $$;
