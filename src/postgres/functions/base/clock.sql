-- One clock for every lease, schedule and time that people look at: the database's. A function, so that a test can move it.
create or replace function sluice.clock() returns timestamptz language sql volatile as $$ select clock_timestamp() $$;
