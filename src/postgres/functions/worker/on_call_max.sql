-- Workers: one lease for all that a worker holds, renewed by one heartbeat, by the database's clock.

-- How many workers of one kind, which serve the same streams, are on call. Only these listen and are rung. The others
-- are in reserve: they poll. NOTIFY signals every backend that listens, about 50 us of CPU each, so the number bounds
-- what an enqueue costs however many workers there are.
create or replace function sluice.on_call_max() returns int language sql immutable parallel safe as $$ select 5 $$;
