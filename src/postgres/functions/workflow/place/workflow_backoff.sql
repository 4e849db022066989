-- How long a node is put off that was tried so many times before.
create or replace function sluice.workflow_backoff(p_tries int) returns interval language sql immutable as
$$ select least(60000, 100 * 4 ^ p_tries) * interval '1 millisecond' $$;
