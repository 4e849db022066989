-- Refuses items with an order key that a task above them holds: the task that waits for them keeps its key, so they
-- would wait for each other for ever. The same holds for fan-outs of items, whichever task above them holds the key.
-- p_from: the index of the first item.
create or replace function sluice.workflow_check_orders(p_run bigint, p_from int, p_orders text[]) returns void
language plpgsql as $$
declare v_above bigint := (select r.parent from sluice.workflow_run r where r.id = p_run); v_key text;
begin
  while v_above is not null loop
    select t.lane_keys[1] into v_key from sluice.task t
    where t.id = v_above and sluice.lane_level(t.lanes[1]) = sluice.order_level();
    -- guard: no item waits for its own parent -> test/postgres/workflow/place.test.ts: "items with an order key that an ancestor holds are refused"
    if /* guard:own-order */ v_key = any (p_orders) /* end */ then
      perform sluice.refuse('invalid_key', format(
        'task %s waits for these items and holds order key "%s", which item %s needs: '
        'they would wait for each other forever',
        v_above, split_part(v_key, E'\x1f', -1), p_from + array_position(p_orders, v_key) - 1));
    end if;
    v_above := (
      select r.parent
      from sluice.workflow_task w
      join sluice.workflow_run r on r.id = w.run
      where w.id = v_above);
  end loop;
end $$;
