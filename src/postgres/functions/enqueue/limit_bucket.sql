-- Returns the number of the advisory lock that a group uses, from 1 to 32. Number 0 is the barrier.
create or replace function sluice.limit_bucket(p_limit int) returns int language sql immutable parallel safe as $$
  select 1 + p_limit % 32
$$;
