-- The lowest id that a key of a limit can have: a lane from here on is one. It equals the number in the predicates of
-- waiting_by_kind and waiting_holding, which statements must match.
create or replace function sluice.first_key() returns bigint language sql immutable parallel safe as $$
  select 3::bigint << 60
$$;
