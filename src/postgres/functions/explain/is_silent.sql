-- Returns whether a worker has missed a heartbeat. It sends three per lease, and at least one every 5 s.
create or replace function sluice.is_silent(p_expires_at timestamptz, p_lease_ms int) returns boolean
language sql stable as $$
  select sluice.clock()
    > p_expires_at - p_lease_ms * interval '1 ms' + least(p_lease_ms / 3, 5000) * interval '1.5 ms'
$$;
