-- Values of references, and texts made of them. The results of a run are kept as long as the run, so nothing is copied:
-- a value is read where it is stored.

-- The error with which a node fails if its input cannot be made, so that the run never stands still.
create or replace function sluice.workflow_error(p_code text, p_message text) returns json language sql immutable as $$
  select json_build_object('name', 'SluiceError', 'code', p_code, 'message', p_message)
$$;
