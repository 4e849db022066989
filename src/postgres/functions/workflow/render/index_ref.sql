-- In a template: the index of the item.
create or replace function sluice.index_ref() returns smallint language sql immutable parallel safe as $$
  select (-2)::smallint
$$;
