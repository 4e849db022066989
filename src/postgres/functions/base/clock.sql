-- The one clock for leases, schedules and all times that people see: the database's. A function, so that tests can
-- move it.
create or replace function sluice.clock() returns timestamptz language sql volatile as $$
  select clock_timestamp()
$$;
