-- In a template: the item.
create or replace function sluice.item_ref() returns smallint language sql immutable parallel safe as $$
  select (-1)::smallint
$$;
