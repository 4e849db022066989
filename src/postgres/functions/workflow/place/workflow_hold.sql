-- Takes one of them in hand, as workflow_take does. False if another has it, or has placed it, or nobody wants it
-- any more. p_ours: in a transaction of our own.
create or replace function sluice.workflow_hold(p_run bigint, p_node smallint, p_ours boolean) returns boolean language plpgsql as $$
begin
  if p_ours then perform sluice.workflow_impatient(); end if;
  perform from sluice.workflow_unplaced u where u.run = p_run and u.node = p_node for update skip locked;
  return found and exists (select from sluice.workflow_node n where n.run = p_run and n.node = p_node and n.state = 'u');
end $$;
