-- Whether a node with this state has begun and is not over: running, unplaced or held. Inlined by the planner.
create or replace function sluice.workflow_is_live(p_state sluice.state) returns boolean language sql immutable as $$
  select p_state in ('running', 'placing', 'held')
$$;
