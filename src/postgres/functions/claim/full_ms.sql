-- How many milliseconds ago a gate was full: -1 if it was until now; the largest number that is exact in JavaScript if
-- it never was.
create or replace function sluice.full_ms(p_until timestamptz, p_now timestamptz) returns bigint
language sql immutable as $$
  select case p_until when 'infinity' then -1 when '-infinity' then sluice.never_ms()
    else sluice.ms_between(p_until, p_now) end
$$;
