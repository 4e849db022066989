-- Returns how many connections the server has and how many are in use, and how many live workers may open (registered).
-- The kind of a backend is visible to its own user only; one with a user and a database is nearly always a client.
create or replace function sluice.connections(
  out server_max int, out reserved int, out in_use int, out workers int, out registered int)
language sql as $$
  select current_setting('max_connections')::int,
    current_setting('superuser_reserved_connections')::int
      + coalesce(current_setting('reserved_connections', true)::int, 0),
    (select count(*)::int from pg_stat_activity a
      where a.usesysid is not null
        and a.datid is not null
        and coalesce(a.backend_type, 'client backend') = 'client backend'),
    count(*)::int,
    coalesce(sum(w.connections), 0)::int
  from sluice.worker w
  where w.expires_at > sluice.clock()
$$;
