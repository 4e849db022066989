-- How many bytes the list of an each's items may have. It may be longer than what one task may be given.
create or replace function sluice.workflow_list_bytes_max() returns int language sql immutable as $$ select 67108864 $$;
