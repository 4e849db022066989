-- Counts ended tasks per node: p_s succeeded, p_f failed, p_c cancelled, p_firsts as in workflow_tally. p_lone: every
-- node has one task, which succeeded. Gives up fail-fast eaches that fail by it, and counts what that cancels. The
-- caller holds the locks of the runs. Runs under the planner settings of workflow_ended. Returns the nodes that are
-- over, and whether all of them succeeded.
create or replace function sluice.workflow_count(
  p_runs bigint[], p_nodes smallint[], p_s int[], p_f int[], p_c int[], p_firsts bigint[], p_lone boolean,
  out over_runs bigint[], out over_nodes smallint[], out good boolean
) language plpgsql as $$
declare
  v_runs bigint[] := p_runs; v_nodes smallint[] := p_nodes; v_firsts bigint[] := p_firsts;
  v_s int[] := p_s; v_f int[] := p_f; v_c int[] := p_c; v_n int; t record;
begin
  good := true;
  if p_lone then
    t := sluice.workflow_count_lone(p_runs, p_nodes);
    over_runs := t.over_runs;
    over_nodes := t.over_nodes;
    if cardinality(over_runs) = cardinality(v_runs) then
      return;
    elsif over_runs is not null then
      select array_agg(u.run), array_agg(u.node) into v_runs, v_nodes
      from unnest(p_runs, p_nodes) u(run, node)
      where not exists (
        select from unnest(over_runs, over_nodes) o(run, node) where o.run = u.run and o.node = u.node);
      v_s := array_fill(1, array[cardinality(v_runs)]);
      v_f := array_fill(0, array[cardinality(v_runs)]);
      v_c := v_f;
    end if;
  end if;
  while v_runs is not null loop
    t := sluice.workflow_tally(v_runs, v_nodes, v_s, v_f, v_c, v_firsts);
    over_runs := over_runs || t.over_runs;
    over_nodes := over_nodes || t.over_nodes;
    good := good and coalesce(t.good, true);
    v_runs := null;
    v_nodes := null;
    v_c := null;
    v_firsts := null;
    for i in 1..coalesce(cardinality(t.failing_runs), 0) loop
      v_n := sluice.workflow_give_up(t.failing_runs[i], t.failing_nodes[i], sluice.workflow_blame());
      continue when v_n is null;
      v_runs := v_runs || t.failing_runs[i];
      v_nodes := v_nodes || t.failing_nodes[i];
      v_c := v_c || v_n;
    end loop;
    v_s := array_fill(0, array[coalesce(cardinality(v_runs), 0)]);
    v_f := v_s;
  end loop;
end $$;
