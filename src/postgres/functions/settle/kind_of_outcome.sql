-- An input that a task does not take (invalid) is a retry, but a final failure if it was rendered from outputs of other
-- nodes of a workflow, which stay what they are.
create or replace function sluice.kind_of_outcome(p_id bigint, p_kind sluice.settlement) returns sluice.settlement
language plpgsql stable as $$
begin
  if p_kind <> 'invalid' then return p_kind; end if;
  return case when exists (
    select from sluice.workflow_task w join sluice.workflow_run r on r.id = w.run and r.graph is not null
    where w.id = p_id) then 'fail' else 'retry' end;
end $$;
