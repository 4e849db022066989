-- A row of a step that is no task.
create or replace function sluice.step_report(p_report json) returns sluice.claimed language sql immutable as
$$ select row(null, null, null, null, null, null, null, null, p_report)::sluice.claimed $$;
