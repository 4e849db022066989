-- Values of references, and texts made of them. What a run has come to so far is kept as long as the run, so
-- nothing is copied: a value is read where it stands.

-- A node fails with this where its input cannot be made; never a run that stands still.
create or replace function sluice.workflow_error(p_code text, p_message text) returns json language sql immutable as
$$ select json_build_object('name', 'SluiceError', 'code', p_code, 'message', p_message) $$;
