-- The error of a node whose input could not be rendered, from the SQLSTATE and the message of the exception.
create or replace function sluice.workflow_caught(p_state text, p_message text) returns json
language sql immutable as $$
  select sluice.workflow_error(
    case
      when p_state <> 'SLUIC' then 'input_not_storable'
      when p_message like '%too large to be stored' then 'result_truncated'
      when p_message like '%are allowed' then 'input_too_large'
      else 'invalid_workflow' end,
    p_message)
$$;
