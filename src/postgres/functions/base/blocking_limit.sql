-- The limit id of an order key that a final failure blocks (onFailure: "block").
create or replace function sluice.blocking_limit() returns int language sql immutable parallel safe as $$
  select -1
$$;
