-- How long a node is put off that has been tried p_tries times before: from 100 ms to a minute.
create or replace function sluice.workflow_backoff(p_tries int) returns interval language sql immutable as $$
  select least(60000, 100 * 4 ^ p_tries) * interval '1 millisecond'
$$;
