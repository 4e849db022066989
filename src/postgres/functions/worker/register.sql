-- Adds a worker and returns its id. p_listens: whether the worker can be on call. The first workers that serve the same
-- streams are on call from the start.
create or replace function sluice.register(
  p_name text, p_streams int[], p_lease_ms int, p_capacity int,
  p_connections int default 0, p_listens boolean default true)
returns bigint language plpgsql as $$
declare
  v_id bigint := ('x' || substr(md5(gen_random_uuid()::text), 1, 15))::bit(60)::bigint;
begin
  insert into sluice.worker (
    id, name, streams, lease_ms, expires_at,
    connections, capacity_max, capacity_available, on_call_since)
  values (
    v_id, p_name, p_streams, p_lease_ms, sluice.clock() + p_lease_ms * interval '1 millisecond',
    p_connections, p_capacity, p_capacity,
    case when p_listens and (select c.on_call from sluice.crew_of(p_streams) c) < sluice.on_call_max()
      then sluice.clock() end);
  -- Streams are locked in the order of their ids: otherwise two registrations could deadlock.
  update sluice.stream set unserved = false where id = any (array(
    select s.id from sluice.stream s where s.id = any (p_streams) and s.unserved order by s.id for update));
  return v_id;
end $$;
