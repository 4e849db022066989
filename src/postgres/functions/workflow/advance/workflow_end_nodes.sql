-- Counts ended tasks per node, by how they ended, and ends nodes; p_firsts as in workflow_count_tasks.
-- p_single_successes: every node has one task, which succeeded. Gives up fail-fast eaches that fail by it, and counts
-- what that cancels. The caller holds the locks of the runs. Runs under the planner settings of workflow_ended. Returns
-- the nodes that are over, and whether all of them succeeded.
create or replace function sluice.workflow_end_nodes(
  p_runs bigint[], p_nodes smallint[], p_succeeded int[], p_failed int[], p_cancelled int[], p_firsts bigint[],
  p_single_successes boolean,
  out over_runs bigint[], out over_nodes smallint[], out all_succeeded boolean
) language plpgsql as $$
declare
  v_runs bigint[] := p_runs; v_nodes smallint[] := p_nodes; v_firsts bigint[] := p_firsts;
  v_succeeded int[] := p_succeeded; v_failed int[] := p_failed; v_cancelled int[] := p_cancelled; v_n int; t record;
begin
  all_succeeded := true;
  if p_single_successes then
    t := sluice.workflow_end_single_tasks(p_runs, p_nodes);
    over_runs := t.over_runs;
    over_nodes := t.over_nodes;
    if cardinality(over_runs) = cardinality(v_runs) then
      return;
    elsif over_runs is not null then
      select array_agg(u.run), array_agg(u.node) into v_runs, v_nodes
      from unnest(p_runs, p_nodes) u(run, node)
      where not exists (
        select from unnest(over_runs, over_nodes) o(run, node) where o.run = u.run and o.node = u.node);
      v_succeeded := array_fill(1, array[cardinality(v_runs)]);
      v_failed := array_fill(0, array[cardinality(v_runs)]);
      v_cancelled := v_failed;
    end if;
  end if;
  while v_runs is not null loop
    t := sluice.workflow_count_tasks(v_runs, v_nodes, v_succeeded, v_failed, v_cancelled, v_firsts);
    over_runs := over_runs || t.over_runs;
    over_nodes := over_nodes || t.over_nodes;
    all_succeeded := all_succeeded and coalesce(t.all_succeeded, true);
    v_runs := null;
    v_nodes := null;
    v_cancelled := null;
    v_firsts := null;
    for i in 1..coalesce(cardinality(t.failing_runs), 0) loop
      v_n := sluice.workflow_give_up(t.failing_runs[i], t.failing_nodes[i], sluice.workflow_sibling_reason());
      continue when v_n is null;
      v_runs := v_runs || t.failing_runs[i];
      v_nodes := v_nodes || t.failing_nodes[i];
      v_cancelled := v_cancelled || v_n;
    end loop;
    v_succeeded := array_fill(0, array[coalesce(cardinality(v_runs), 0)]);
    v_failed := v_succeeded;
  end loop;
end $$;
