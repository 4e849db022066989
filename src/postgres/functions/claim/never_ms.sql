-- Stands for "never" in how many milliseconds ago: the largest number that is exact in JavaScript.
create or replace function sluice.never_ms() returns bigint language sql immutable parallel safe as $$
  select 9007199254740991
$$;
