-- The lowest int: the start of a range of ids, of which sets of totals are negative.
create or replace function sluice.int_min() returns int language sql immutable parallel safe as $$
  select -2147483648
$$;
