-- Sets a run back for a retry: nodes of p_again run and wait for their tasks to come back, nodes of p_anew are pending
-- again and lose their tasks. The caller holds the run's lock; rows of nodes that are to be placed are taken with SKIP
-- LOCKED, and the retry is refused if a transaction places one just now. Runs under the settings of workflow_retry.
create or replace function sluice.workflow_retry_reset(
  p_run bigint, p_graph int, p_again smallint[], p_anew smallint[]
) returns void language plpgsql as $$
begin
  delete from sluice.workflow_halt where run = p_run and node = any (p_again || p_anew);
  delete from sluice.workflow_timer where run = p_run and node = any (p_anew);
  delete from sluice.workflow_unplaced
  where ctid = any (array(
    select ctid from sluice.workflow_unplaced where run = p_run and node = any (p_anew) for update skip locked));
  if exists (select from sluice.workflow_unplaced where run = p_run and node = any (p_anew)) then
    perform sluice.refuse('workflow_stopping', 'tasks of the run are being placed: try again');
  end if;
  delete from sluice.workflow_task where run = p_run and node = any (p_anew);
  insert into sluice.workflow_again (run, node, failed, cancelled, outcome)
  select p_run, n.node, n.failed, n.cancelled, n.outcome
  from sluice.workflow_node n where n.run = p_run and n.node = any (p_again);
  update sluice.workflow_node
  set state = 'running', failing = false, failed = 0, cancelled = 0, outcome = null, finished_at = null
  where run = p_run and node = any (p_again);
  -- window_size stays: what was set for this run holds for it, also when the node begins anew.
  update sluice.workflow_node
  set state = 'pending', failing = false, total = 0, succeeded = 0, failed = 0, cancelled = 0,
    lane = null, task = null, outcome = null, started_at = null, finished_at = null
  where run = p_run and node = any (p_anew);
  update sluice.workflow_node n
  set blocked = (
    select count(*)
    from sluice.workflow_step s
    cross join lateral unnest(s.deps) d(node)
    join sluice.workflow_node x on x.run = p_run and x.node = d.node and x.finished_at is null
    where s.graph = p_graph and s.node = n.node)
  where n.run = p_run and n.node = any (p_anew);
  update sluice.workflow_run
  set state = 'running', stopping = false, paused = false, finished_at = null, outcome = null,
    open = (select count(*) from sluice.workflow_node n where n.run = p_run and n.finished_at is null)
  where id = p_run;
end $$;
