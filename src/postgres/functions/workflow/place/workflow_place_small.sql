-- Places nodes that workflow_take_small has taken, all of one type and with equal terms, and lets them run: the n-th
-- input is that of the n-th node. p_lock: the runs of all nodes that were taken, with the first of several calls in one
-- transaction, so that they are locked in the order of their ids. Refuses all if one is not wanted any more.
create or replace function sluice.workflow_place_small(
  p_lock bigint[], p_runs bigint[], p_nodes smallint[], p_stream int, p_priority int, p_attempts int, p_inputs text,
  p_limits int[] default null, p_keys text default null, p_orders text default null,
  p_order_blocks boolean default false
) returns void language plpgsql /* settings: index plans */ as $$
declare v_inputs json[] := string_to_array(p_inputs, E'\x1e')::json[]; v_ids bigint[]; v_tids tid[];
begin
  -- guard: small ones in the order of their runs -> test/postgres/workflow/place.test.ts: "a batch of small nodes locks its runs in the order of their ids"
  perform from sluice.workflow_run r where r.id = any (p_lock) order by r.id
    /* guard:order */ for /* end */ no key update;
  v_tids := array(
    select x.tid
    from unnest(p_runs, p_nodes) with ordinality u(run, node, i)
    cross join lateral (
      select n.ctid as tid from sluice.workflow_node n
      where n.run = u.run and n.node = u.node and /* guard:wanted */ n.state = 'placing' /* end */
        and n.kind = 'task' and n.stream = p_stream limit 1
    ) x
    order by u.i);
  -- guard: small ones only while they are wanted -> test/postgres/workflow/place.test.ts: "no node of a batch is placed if one of them was cancelled"
  if cardinality(v_tids) <> cardinality(v_inputs) then
    perform sluice.refuse('workflow_over', 'one of these nodes can no longer be placed');
  end if;
  v_ids := array(select nextval('sluice.task_id') from generate_series(1, cardinality(v_inputs)));
  perform sluice.insert_limited(
    p_stream, (-p_priority)::smallint, p_attempts::smallint, v_ids, v_inputs, p_limits, p_keys, p_orders,
    p_order_blocks, null, null, null);
  insert into sluice.workflow_task (id, run, node, item)
  select u.id, u.run, u.node, 0 from unnest(v_ids, p_runs, p_nodes) u(id, run, node);
  update sluice.workflow_node n
  set state = 'running', task = u.id
  from unnest(v_ids, v_tids) u(id, tid) where n.ctid = u.tid;
  delete from sluice.workflow_unplaced
  where ctid = any (array(
    select x.tid
    from unnest(p_runs, p_nodes) u(run, node)
    cross join lateral (
      select k.ctid as tid from sluice.workflow_unplaced k where k.run = u.run and k.node = u.node limit 1
    ) x));
  perform sluice.workflow_limit_idle_commit();
  perform sluice.workflow_ring(array[p_stream], cardinality(v_ids));
end $$;
