-- A row of a step that is no task.
create or replace function sluice.step_note(p_note json) returns sluice.claimed language sql immutable as
$$ select row(null, null, null, null, null, null, null, null, p_note)::sluice.claimed $$;
