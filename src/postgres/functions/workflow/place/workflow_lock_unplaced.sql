-- Locks one node whose tasks are to be placed, as workflow_take does. p_ours: in a transaction of our own. Returns
-- false if another transaction holds it or has placed it, or it is not wanted any more.
create or replace function sluice.workflow_lock_unplaced(p_run bigint, p_node smallint, p_ours boolean) returns boolean
language plpgsql as $$
begin
  if p_ours then
    perform sluice.workflow_limit_idle();
  end if;
  perform from sluice.workflow_unplaced u where u.run = p_run and u.node = p_node for update skip locked;
  return found
    and exists (select from sluice.workflow_node n where n.run = p_run and n.node = p_node and n.state = 'placing');
end $$;
