-- The highest int: the end of a range of ids.
create or replace function sluice.int_max() returns int language sql immutable parallel safe as $$
  select 2147483647
$$;
