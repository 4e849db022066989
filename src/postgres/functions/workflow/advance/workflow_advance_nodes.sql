-- Advance: nodes that end make their successors runnable, in the transaction in which they end. Called by everything
-- that ends tasks, after it has recorded the ends and before it locks lanes. migrations/0001_tables.sql has the order
-- of locks.

-- Begins or skips nodes that wait for nothing any more. p_ended_deps: how many dependencies of each node have just
-- ended. p_ended_deps null: the nodes themselves have just ended, and their successors are advanced; p_all_succeeded:
-- all of them succeeded. The caller holds the locks of the runs. Returns the nodes that are over already, the streams
-- and the number of new tasks, and whether some of them joined a window.
create or replace function sluice.workflow_advance_nodes(
  p_runs bigint[], p_nodes smallint[], p_ended_deps smallint[], p_all_succeeded boolean default false,
  out over_runs bigint[], out over_nodes smallint[], out streams int[], out made int, out joined boolean
) language plpgsql /* settings: index plans */ as $$
declare
  v record; t record;
  v_runs bigint[]; v_nodes smallint[]; v_streams int[]; v_fates sluice.fate[]; v_errors json[];
  v_state sluice.state; v_room int := 5000; v_total int;
begin
  made := 0;
  joined := false;
  v := sluice.workflow_fates(p_runs, p_nodes, p_ended_deps, p_all_succeeded);
  if v.runs is null then
    return;
  end if;
  v_fates := v.fates;
  if v.types is not null then
    t := sluice.workflow_make_tasks(v.runs, v.nodes, v.tids, v.graphs, v.bytes, v.streams, v.fates, v.types);
    v_fates := t.fates;
    v_errors := t.errors;
    streams := t.streams;
    made := t.made;
  end if;
  -- The life of a chain: every node that could begin has its task, and there is nothing else to do.
  if made = cardinality(v.runs) then
    return;
  end if;
  v_runs := v.runs;
  v_nodes := v.nodes;
  v_streams := v.streams;
  perform sluice.workflow_mark(v_runs, v_nodes, v.tids, v.lefts, v_fates, v_streams, v_errors);
  if 'placing' = any (v_fates) then
    -- Counted as made: workers that are woken to claim these tasks place them.
    streams := streams
      || array(select distinct stream from unnest(v_fates, v_streams) u(fate, stream) where fate = 'placing');
    made := made + (select count(*) from unnest(v_fates) f where f = 'placing');
  end if;

  select array_agg(u.run), array_agg(u.node) into over_runs, over_nodes
  from unnest(v_runs, v_nodes, v_fates) u(run, node, fate)
  where u.fate in ('skipped_by_failure', 'skipped_by_condition', 'failed');
  for i in 1..cardinality(v_runs) loop
    continue when v_fates[i] not in ('make_items', 'begin');
    v_state := case
      when v_fates[i] = 'make_items' then sluice.workflow_begin_each(v_runs[i], v_nodes[i], least(v_room, 1000))
      else sluice.workflow_begin(v_runs[i], v_nodes[i]) end;
    if v_state in ('succeeded', 'failed') then
      over_runs := over_runs || v_runs[i];
      over_nodes := over_nodes || v_nodes[i];
    elsif v_state = 'placing' then
      streams := streams || v_streams[i];
      made := made + 1;
    elsif v_fates[i] = 'make_items' and v_state = 'running' then
      v_total := (select n.total from sluice.workflow_node n where n.run = v_runs[i] and n.node = v_nodes[i]);
      joined := true;
      streams := streams || v_streams[i];
      made := made + v_total;
      -- guard: few items at once -> test/postgres/workflow/standing.test.ts: "a step that starts many fan-outs creates 5,000 items, and other transactions create the rest"
      /* guard:few */ v_room := v_room - v_total; /* end */
    end if;
  end loop;
end $$;
