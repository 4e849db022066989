-- Begins nodes that wait for nothing any more, advances their runs, and wakes workers for what was made. The caller
-- holds the locks of the runs.
create or replace function sluice.workflow_begin_nodes(p_runs bigint[], p_nodes smallint[]) returns void
language plpgsql as $$
declare g record; v record;
begin
  g := sluice.workflow_advance_nodes(p_runs, p_nodes, array_fill(0::smallint, array[cardinality(p_runs)]));
  if g.over_runs is not null then
    v := sluice.workflow_cascade(g.over_runs, g.over_nodes);
    g.made := g.made + v.made;
    g.streams := g.streams || v.streams;
  end if;
  perform sluice.workflow_ring(g.streams, g.made);
end $$;
