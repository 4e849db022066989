-- The first of these runs that have at most p_max nodes together; at least one run, which has at most 500 nodes.
create or replace function sluice.workflow_few_nodes(p_runs bigint[], p_max int) returns bigint[]
language plpgsql /* settings: index plans */ as $$
declare v_run bigint; v_runs bigint[] := '{}'; v_n int := 0;
begin
  foreach v_run in array p_runs loop
    v_n := v_n + (select count(*) from sluice.workflow_node n where n.run = v_run);
    exit when v_n > p_max and v_runs <> '{}';
    v_runs := v_runs || v_run;
  end loop;
  return v_runs;
end $$;
