-- Returns the turn of a task that has drawn none: by its id.
create or replace function sluice.own_turn(p_id bigint) returns bigint language sql immutable parallel safe as $$
  select p_id << sluice.turn_bits()
$$;
