-- The limit id of the window of a fan-out.
create or replace function sluice.window_limit() returns int language sql immutable parallel safe as $$
  select -2
$$;
