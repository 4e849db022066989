-- Inserts tasks for the items of a node, beginning with p_from, with the order and the keys that code has decided. The
-- lists are those of enqueue_many. Takes no lock on the run and does not touch the node: workflow_placed does that
-- last, so that nothing waits for the run meanwhile.
create or replace function sluice.workflow_place(
  p_run bigint, p_node smallint, p_from int, p_stream int, p_priority int, p_attempts int, p_inputs text,
  p_limits int[] default null, p_keys text default null, p_orders text default null,
  p_order_blocks boolean default false
) returns void language plpgsql as $$
declare v_inputs json[] := string_to_array(p_inputs, E'\x1e')::json[]; v sluice.workflow_node; v_ids bigint[];
begin
  select * into v from sluice.workflow_node where run = p_run and node = p_node;
  -- guard: only what is to be placed -> test/postgres/workflow/place.test.ts: "a node that is already placed or has another type gets no tasks"
  if /* guard:wanted */ v.state is distinct from 'placing' /* end */ then
    perform sluice.refuse('workflow_over', 'the tasks of this node cannot be placed now');
  end if;
  if /* guard:type */ p_stream is distinct from v.stream /* end */ then
    perform sluice.refuse('invalid_option', 'the tasks of this node have another type');
  end if;
  if p_orders is not null then
    perform sluice.workflow_check_orders(p_run, p_from, string_to_array(p_orders, E'\x1e'));
  end if;
  v_ids := array(select nextval('sluice.task_id') from generate_series(1, cardinality(v_inputs)));
  perform sluice.insert_limited(
    p_stream, (-p_priority)::smallint, p_attempts::smallint, v_ids, v_inputs, p_limits, p_keys, p_orders,
    p_order_blocks, null, null, null, v.lane, p_run || ':' || p_node);
  insert into sluice.workflow_task (id, run, node, item)
  select u.id, p_run, p_node, p_from + u.n - 1 from unnest(v_ids) with ordinality u(id, n);
end $$;
