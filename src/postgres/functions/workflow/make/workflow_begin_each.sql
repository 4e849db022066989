-- Begins an each. Creates its tasks here if no code is needed and they are at most p_room; else a transaction of its
-- own places them, so that no step takes seconds. An each that was held while it was to be placed keeps its window:
-- another transaction may still be placing it, and its tasks stand in that window. The caller holds the run's lock.
-- Returns the node's state: succeeded if there is nothing to do, failed if it cannot be done, else running or placing.
create or replace function sluice.workflow_begin_each(p_run bigint, p_node smallint, p_room int) returns sluice.state
language plpgsql as $$
declare
  v record; s record; t record; v_total int; v_lane bigint; v_window int; v_error json; v_later boolean := false;
begin
  select k.* into s
  from sluice.workflow_run r
  join sluice.workflow_step k on k.graph = r.graph and k.node = p_node
  where r.id = p_run;
  -- guard: a window is kept -> test/postgres/workflow/place.test.ts: "a fan-out that is paused and resumed while it is placed keeps its window"
  select n.lane, n.window_size into v_lane, v_window
  from sluice.workflow_node n where n.run = p_run and /* guard:window */ n.node = p_node /* end */;
  -- guard: a set window outlives a retry -> test/postgres/workflow/again.test.ts: "a window that was set for a run still holds after a retry"
  v_window := /* guard:kept-window */ coalesce(v_window, s.window_size) /* end */;
  begin
    select * into v from sluice.workflow_items(p_run, p_node);
    v_error := sluice.workflow_items_error(v.items, v.parts);
    v_total := case when v_error is null then json_array_length(v.items) end;
    if v_total > 0 then
      if v_window is not null then
        v_lane := coalesce(v_lane, (sluice.window_level()::bigint << 60) | nextval('sluice.workflow_lane'));
      end if;
      select * into t from sluice.workflow_terms(s.stream);
      -- An each that was paused while a placer held it may still have its row: the placer may place it yet.
      -- guard: what is in hand is left there -> test/postgres/workflow/standing.test.ts: "a locked fan-out that needs no code after a resume blocks no other session"
      v_later := t.in_code or v_total > p_room /* guard:in-hand */
        or exists (select from sluice.workflow_unplaced x where x.run = p_run and x.node = p_node) /* end */;
      if not v_later then
        perform sluice.workflow_fan(
          p_run, p_node, s.stream, v_lane, coalesce(s.rank, t.rank), coalesce(s.attempts, t.attempts), t.gate,
          v.items, v.parts, v.kinds, v.paths, v.bytes_max);
      end if;
    end if;
  exception when sqlstate 'SLUIC' or data_exception or program_limit_exceeded then
    v_error := sluice.workflow_caught(sqlstate, sqlerrm);
  end;
  if v_error is not null or v_total = 0 then
    update sluice.workflow_node
    set state = case when v_error is null then 'succeeded' else 'failed' end::sluice.state,
      outcome = v_error,
      finished_at = sluice.clock()
    where run = p_run and node = p_node;
    return case when v_error is null then 'succeeded' else 'failed' end;
  end if;
  if v_later then
    -- guard: the row in hand is kept -> test/postgres/workflow/place.test.ts: "a fan-out that is paused and resumed while it is placed keeps its window"
    insert into sluice.workflow_unplaced (run, node, stream, in_code)
    values (p_run, p_node, s.stream, t.in_code) /* guard:row */ on conflict do nothing /* end */;
  end if;
  update sluice.workflow_node
  set state = case when v_later then 'placing' else 'running' end::sluice.state,
    total = v_total, window_size = v_window, lane = v_lane, stream = s.stream
  where run = p_run and node = p_node;
  return case when v_later then 'placing' else 'running' end;
end $$;
