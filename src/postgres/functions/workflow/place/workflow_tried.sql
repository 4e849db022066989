-- It came back. In the transaction that places the nodes; or before that rolls back, in one of its own.
create or replace function sluice.workflow_tried(p_id bigint) returns boolean language plpgsql as $$
begin
  delete from sluice.workflow_trying
  where id = any (array(select t.id from sluice.workflow_trying t where t.id = p_id for update skip locked));
  return found;
end $$;
