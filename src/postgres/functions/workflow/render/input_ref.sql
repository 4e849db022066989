-- In a template: the input of the run.
create or replace function sluice.input_ref() returns smallint language sql immutable parallel safe as $$
  select 0::smallint
$$;
