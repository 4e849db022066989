-- Ends nodes of one task, which succeeded: the life of a chain. All become the same, so none is looked up twice. The
-- caller holds the locks of the runs. Runs under the planner settings of workflow_ended. Returns the nodes it ended;
-- the others are not nodes of one task.
create or replace function sluice.workflow_end_single_tasks(
  p_runs bigint[], p_nodes smallint[], out over_runs bigint[], out over_nodes smallint[]
) language plpgsql as $$
begin
  with counted as (
    update sluice.workflow_node n
    set succeeded = 1, state = 'succeeded', finished_at = sluice.clock()
    where n.ctid = any (array(
      select x.tid
      from unnest(p_runs, p_nodes) u(run, node)
      cross join lateral (
        select k.ctid as tid from sluice.workflow_node k
        where k.run = u.run and k.node = u.node and k.state = 'running' and k.policy = 'task' limit 1
      ) x))
    returning n.run, n.node
  )
  select array_agg(run), array_agg(node) into over_runs, over_nodes from counted;
end $$;
