-- The low bits of a turn, which the sequence `turn` counts in; the others are a task id.
create or replace function sluice.turn_bits() returns int language sql immutable parallel safe as $$
  select 20
$$;
