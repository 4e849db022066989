-- workflow_make for all nodes at once; if an input cannot be rendered, for one node after the other. Returns how many
-- tasks were made and, in the second case, the error of each node, null where there is none.
create or replace function sluice.workflow_make_or_fail(
  p_runs bigint[], p_nodes smallint[], p_tids tid[], p_graphs int[], p_bytes int[], p_streams int[],
  p_fates sluice.fate[], p_terms sluice.workflow_made[],
  out made int, out errors json[]
) language plpgsql as $$
begin
  begin
    made := sluice.workflow_make(p_runs, p_nodes, p_tids, p_graphs, p_bytes, p_streams, p_fates, p_terms);
    return;
  exception when sqlstate 'SLUIC' or data_exception or program_limit_exceeded then
    made := 0;
    errors := array_fill(null::json, array[cardinality(p_runs)]);
  end;
  for i in 1..cardinality(p_runs) loop
    begin
      made := made + sluice.workflow_make(
        p_runs[i:i], p_nodes[i:i], p_tids[i:i], p_graphs[i:i], p_bytes[i:i], p_streams[i:i], p_fates[i:i], p_terms);
    exception when sqlstate 'SLUIC' or data_exception or program_limit_exceeded then
      errors[i] := sluice.workflow_caught(sqlstate, sqlerrm);
    end;
  end loop;
end $$;
