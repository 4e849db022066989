-- Whether a task, node or run with this state failed or was cancelled. Inlined by the planner.
create or replace function sluice.workflow_is_unsuccessful(p_state sluice.state) returns boolean
language sql immutable as $$
  select p_state in ('failed', 'cancelled')
$$;
