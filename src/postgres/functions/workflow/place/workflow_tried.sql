-- Ends a try that workflow_try has begun: the user's code came back. In the transaction that places the nodes or,
-- before that rolls back, in one of its own. Returns false if the row is gone or another transaction holds it.
create or replace function sluice.workflow_tried(p_id bigint) returns boolean language plpgsql as $$
begin
  delete from sluice.workflow_trying
  where id = any (array(select t.id from sluice.workflow_trying t where t.id = p_id for update skip locked));
  return found;
end $$;
