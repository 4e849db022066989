-- Every other outcome, one letter each: r retry after p_delays ms, f final failure, c cancelled,
-- z snooze (no attempt used), b handed back (no attempt used), w waits for its children: its outcome is the list
-- of their runs (no attempt used), i its input is not what it takes: a retry, but for good if the input was
-- rendered from the outputs of others, which stay what they are. A retry or snooze keeps the slot of
-- its order key and gives the others back; a task handed back keeps all its narrow slots.
-- Returns the ids that were still ours.
create or replace function sluice.settle(p_worker bigint, p_ids bigint[], p_claims bigint[], p_kinds text[], p_delays bigint[], p_outcomes text)
returns bigint[] language plpgsql set lock_timeout = '2s' as $$
declare v record;
begin
  perform sluice.barrier_shared();
  perform sluice.require_lease(p_worker);
  select * into v from sluice.settle_others(p_ids, p_claims, p_kinds, p_delays, p_outcomes);
  if v.slept is not null or v.ended is not null and exists (select from sluice.workflow_active) then
    perform sluice.workflow_ended_elsewhere(v.ended, v.ended_states, v.slept);
  end if;
  if v.gates is not null then perform sluice.give_back(v.gates, v.gates_n); end if;
  if v.lanes is not null then perform sluice.ring_streams(sluice.admit(v.lanes, null, null, null)); end if;
  -- One that claims no more cannot look itself, and slots of totals may be of use to other workers.
  if v.gates is not null then
    perform sluice.ring(w.streams, cardinality(p_ids)) from sluice.worker w where w.id = p_worker and w.draining;
    perform sluice.ring_streams((sluice.rivals(v.gates, w.streams)).streams) from sluice.worker w where w.id = p_worker;
  end if;
  return v.settled;
end $$;
