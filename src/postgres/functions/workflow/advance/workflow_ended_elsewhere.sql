-- workflow_ended for callers that claim nothing: records orphaned fan-outs and wakes workers for what was made.
create or replace function sluice.workflow_ended_elsewhere(
  p_ids bigint[], p_states sluice.state[], p_parents bigint[] default null
) returns void language plpgsql as $$
declare v record;
begin
  select * into v from sluice.workflow_ended(p_ids, p_states, p_parents);
  if p_states is not null then
    perform sluice.workflow_note_orphans_of(array(
      select u.id from unnest(p_ids, p_states) u(id, state) where u.state <> 'succeeded'));
  end if;
  perform sluice.workflow_ring(v.streams, v.made);
end $$;
