-- Milliseconds from one time to another, 0 if that is before it.
create or replace function sluice.ms_between(p_from timestamptz, p_to timestamptz) returns bigint
language sql immutable as
$$ select greatest(0, date_part('epoch', p_to - p_from) * 1000)::bigint $$;
