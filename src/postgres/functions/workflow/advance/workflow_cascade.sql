-- Advances the runs of nodes that are over, until nothing changes: at most n rounds for a graph of n nodes, because
-- every round ends at least one node. p_all_succeeded: all of the nodes succeeded. The caller holds the locks of the
-- runs. Returns the streams and the number of new tasks, and whether some of them joined a window.
create or replace function sluice.workflow_cascade(
  p_runs bigint[], p_nodes smallint[], p_all_succeeded boolean default false,
  out streams int[], out made int, out joined boolean
) language plpgsql /* settings: index plans */ as $$
declare
  v_runs bigint[] := p_runs; v_nodes smallint[] := p_nodes; v_good boolean := p_all_succeeded;
  v_all bigint[]; g record;
begin
  made := 0;
  joined := false;
  while v_runs is not null loop
    v_all := v_all || v_runs;
    g := sluice.workflow_advance_nodes(v_runs, v_nodes, null, v_good);
    v_good := false;
    made := made + g.made;
    joined := joined or g.joined;
    streams := streams || g.streams;
    v_runs := g.over_runs;
    v_nodes := g.over_nodes;
  end loop;
  perform sluice.workflow_end_runs(v_all);
end $$;
