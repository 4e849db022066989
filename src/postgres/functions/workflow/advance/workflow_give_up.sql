-- Gives up a fail-fast each at its first failure: cancels the items in flight and the next ones here; the keeper
-- cancels the rest in batches. The caller holds the run's lock. Returns how many items it cancelled, null if there is
-- nothing to count.
create or replace function sluice.workflow_give_up(p_run bigint, p_node smallint, p_reason text) returns int
language plpgsql /* settings: index plans */ as $$
declare v_n int; v_pending bigint[]; v_stayed boolean; v record;
begin
  -- guard: given up with what is not back -> test/postgres/workflow/again.test.ts: "a failFast fan-out that fails again during a retry ends with the outcomes of items that are not back"
  v_stayed := /* guard:stay */ sluice.workflow_abandon_retry(p_run, p_node) is not null /* end */;
  select * into v from sluice.workflow_in_flight(p_run, p_node, 500);
  select count(*) filter (where c.answer = 'cancelled'),
    array_agg(c.id) filter (where c.answer in ('asked', 'moving'))
  into v_n, v_pending
  from sluice.cancel(v.ids, p_reason, false) c;
  -- guard: asked until they are over -> test/postgres/workflow/races.test.ts: "an item that is cancelled while it is released is still cancelled"
  insert into sluice.workflow_halt (run, node, item, pending, reason)
  select p_run, p_node, case when not v.every then -1 end,
    /* guard:pending */ coalesce(v_pending, '{}'), p_reason
  where /* end */ v_pending is not null or not v.every
  on conflict do nothing;
  return case when v_n > 0 or v_stayed then v_n end;
end $$;
