-- The number of slots that stands for "no limit".
create or replace function sluice.no_limit() returns int language sql immutable parallel safe as $$
  select 2147483647
$$;
