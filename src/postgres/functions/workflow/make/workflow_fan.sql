-- Creates all tasks of an each that needs no code, in the order of its items. The caller holds the run's lock, or the
-- row that says that the node is to be placed, and marks the node. Within a window's lane all tasks have the same
-- place, so that ids decide, and with them items.
create or replace function sluice.workflow_fan(
  p_run bigint, p_node smallint, p_stream int, p_lane bigint, p_rank smallint, p_attempts smallint, p_gate int,
  p_items json, p_parts text[], p_refs smallint[], p_paths text[], p_max int
) returns void language plpgsql /* settings: index plans */ as $$
declare v_sole text[] := case when p_refs = array[sluice.item_ref()] then p_paths[1]::text[] end;
begin
  with item as materialized (
    select nextval('sluice.task_id') as id, e.n,
      case
        when v_sole is not null then
          sluice.workflow_fit(p_parts[1] || coalesce((e.value #> v_sole)::text, 'null') || p_parts[2], p_max)
        else sluice.workflow_item_input(e.value, e.n - 1, p_parts, p_refs, p_paths, p_max) end::json as input
    from json_array_elements(p_items) with ordinality e(value, n)
  ), tasks as (
    insert into sluice.task (id, stream, rank, attempts_max, gate, lanes, lane_limits, lane_keys, input)
    select id, p_stream, p_rank, p_attempts, p_gate,
      case when p_lane is not null then array[p_lane] end,
      case when p_lane is not null then array[sluice.window_limit()] end,
      case when p_lane is not null then array[p_run || ':' || p_node] end,
      input
    from item
  ), waits as (
    insert into sluice.waiting (id, lane, place, rank, attempt, held, stream, gate, lanes, lane_limits)
    select id, p_lane, 0, p_rank, 0, 0, p_stream, p_gate, array[p_lane], array[sluice.window_limit()]
    from item where p_lane is not null
  ), readies as (
    insert into sluice.ready (id, stream, rank, attempt, turn)
    select id, p_stream, p_rank, 0, sluice.own_turn(id) from item where p_lane is null and p_gate = 0
  ), gates as (
    insert into sluice.gated (id, stream, gate, rank, attempt, turn)
    select id, p_stream, p_gate, p_rank, 0, sluice.own_turn(id) from item where p_lane is null and p_gate <> 0
  ), notes as (
    insert into sluice.dirty (lane, limit_id) select p_lane, sluice.window_limit() where p_lane is not null
  )
  insert into sluice.workflow_task (id, run, node, item) select id, p_run, p_node, n - 1 from item;
end $$;
