-- Creates the tasks of nodes with the fate make_task, whose streams are p_types; the other lists as workflow_fates
-- returns them. The caller holds the locks of the runs. Runs under the planner settings of workflow_advance_nodes.
-- Returns the fates: placing where only code can place the task, failed where its input cannot be rendered, with the
-- errors; and the streams and the number of new tasks.
create or replace function sluice.workflow_make_tasks(
  p_runs bigint[], p_nodes smallint[], p_tids tid[], p_graphs int[], p_bytes int[], p_streams int[],
  p_fates sluice.fate[], p_types int[],
  out fates sluice.fate[], out streams int[], out made int, out errors json[]
) language plpgsql as $$
declare v_type int; v_in_code int[]; v_terms sluice.workflow_made[]; t record; k record;
begin
  fates := p_fates;
  made := 0;
  -- The terms once per stream: nodes of many runs are mostly of a few types.
  foreach v_type in array p_types loop
    t := sluice.workflow_terms(v_type);
    if t.in_code then
      v_in_code := v_in_code || v_type;
    else
      v_terms := v_terms || row(v_type, t.rank, t.attempts, t.gate)::sluice.workflow_made;
      streams := streams || v_type;
    end if;
  end loop;
  if v_in_code is not null then
    fates := array(
      select case when u.fate = 'make_task' and u.stream = any (v_in_code) then 'placing' else u.fate end
      from unnest(fates, p_streams) with ordinality u(fate, stream, n) order by u.n);
  end if;
  if v_terms is null then
    return;
  end if;
  k := sluice.workflow_make_or_fail(p_runs, p_nodes, p_tids, p_graphs, p_bytes, p_streams, fates, v_terms);
  made := k.made;
  errors := k.errors;
  if errors is not null then
    fates := array(
      select case when u.error is null then u.fate else 'failed' end
      from unnest(fates, errors) with ordinality u(fate, error, n) order by u.n);
  end if;
end $$;
