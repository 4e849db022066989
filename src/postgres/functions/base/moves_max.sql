-- How many tasks one transaction admits to one lane at most; a note lets the next claim go on.
create or replace function sluice.moves_max() returns int language sql immutable parallel safe as $$
  select 1000
$$;
