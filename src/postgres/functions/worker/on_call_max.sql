-- Workers: one lease for everything that a worker holds, renewed by one heartbeat, by the database's clock.

-- The maximum number of workers on call among those that serve the same streams. Only these listen and are rung; the
-- others are in reserve and poll. NOTIFY signals every backend that listens, about 50 us of CPU each, so this number
-- bounds the cost of an enqueue, however many workers there are.
create or replace function sluice.on_call_max() returns int language sql immutable parallel safe as $$
  select 5
$$;
