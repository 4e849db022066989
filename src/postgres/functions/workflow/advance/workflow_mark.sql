-- Writes the fates of nodes into their rows, but for those with the fate make_task, which have been written with their
-- tasks, and notes the nodes whose tasks are to be placed. The lists as workflow_fates and workflow_make_tasks
-- return them.
-- The caller holds the locks of the runs. Runs under the planner settings of workflow_advance_nodes.
create or replace function sluice.workflow_mark(
  p_runs bigint[], p_nodes smallint[], p_tids tid[], p_lefts smallint[], p_fates sluice.fate[], p_streams int[],
  p_errors json[]
) returns void language plpgsql as $$
declare v_now timestamptz := sluice.clock();
begin
  update sluice.workflow_node n
  set blocked = u.left_over, outcome = u.error, stream = coalesce(u.stream, n.stream),
    total = case when u.fate = 'placing' then 1 else n.total end,
    state = case
      when u.fate = 'blocked' then n.state
      when u.fate in ('make_items', 'begin') then 'running'
      else u.fate::text::sluice.state end,
    started_at = case when u.fate in ('placing', 'make_items', 'begin') then v_now else n.started_at end,
    finished_at = case when u.fate in ('failed', 'skipped_by_failure', 'skipped_by_condition') then v_now end
  from unnest(p_tids, p_lefts, p_fates, p_streams, p_errors) u(tid, left_over, fate, stream, error)
  where n.ctid = u.tid and u.fate <> 'make_task';
  if 'placing' = any (p_fates) then
    insert into sluice.workflow_unplaced (run, node, stream, in_code)
    select run, node, stream, true
    from unnest(p_runs, p_nodes, p_fates, p_streams) u(run, node, fate, stream)
    where fate = 'placing'
    on conflict do nothing;
  end if;
end $$;
