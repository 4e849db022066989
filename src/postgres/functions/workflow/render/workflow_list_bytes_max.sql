-- The largest list of items of an each, in bytes. It may be longer than the input of one task.
create or replace function sluice.workflow_list_bytes_max() returns int language sql immutable as $$
  select 67108864
$$;
