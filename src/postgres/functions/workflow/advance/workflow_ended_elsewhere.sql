-- The same for whoever claims nothing himself: others are told what there is.
create or replace function sluice.workflow_ended_elsewhere(p_ids bigint[], p_states "char"[], p_slept bigint[] default null) returns void language plpgsql as $$
declare v record;
begin
  select * into v from sluice.workflow_ended(p_ids, p_states, p_slept);
  if p_states is not null then perform sluice.workflow_bereave(array(select u.id from unnest(p_ids, p_states) u(id, state) where u.state <> 's')); end if;
  if v.made > 0 and exists (select from sluice.worker where asleep) then perform sluice.ring(v.streams, v.made); end if;
end $$;
