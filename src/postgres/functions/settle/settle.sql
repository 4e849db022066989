-- Records any outcome but success (sluice.settlement has the kinds). A retry or a snooze runs again after p_delays ms.
-- A wait lists the runs of its children in its outcome. A snooze, a release and a wait use no attempt. A retry, a
-- snooze and a wait keep the slot of the order key and give the others back; a release keeps all slots of lanes.
-- Returns the ids that were still the worker's.
create or replace function sluice.settle(p_worker bigint, p_ids bigint[], p_claims bigint[],
  p_kinds sluice.settlement[], p_delays bigint[], p_outcomes text)
returns bigint[] language plpgsql set lock_timeout = '2s' as $$
declare v record;
begin
  perform sluice.barrier_shared();
  perform sluice.require_lease(p_worker);
  select * into v from sluice.settle_others(p_ids, p_claims, p_kinds, p_delays, p_outcomes);
  if v.parents is not null or v.ended is not null and exists (select from sluice.workflow_active) then
    perform sluice.workflow_ended_elsewhere(v.ended, v.ended_states, v.parents);
  end if;
  if v.gates is not null then perform sluice.give_back(v.gates, v.gates_n); end if;
  if v.lanes is not null then perform sluice.ring_streams(sluice.admit(v.lanes, null, null, null)); end if;
  -- A worker that claims no more does not look itself, and slots of totals may be of use to other workers.
  if v.gates is not null then
    perform sluice.ring(w.streams, cardinality(p_ids)) from sluice.worker w where w.id = p_worker and w.draining;
    perform sluice.ring_streams((sluice.rivals(v.gates, w.streams)).streams) from sluice.worker w where w.id = p_worker;
  end if;
  return v.settled;
end $$;
