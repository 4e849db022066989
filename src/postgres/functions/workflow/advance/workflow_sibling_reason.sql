-- The reason given to items of a fail-fast each that are cancelled because of another item. It tells them apart from
-- the item that was the cause.
create or replace function sluice.workflow_sibling_reason() returns text language sql immutable as $$
  select 'another item failed or was cancelled'
$$;
