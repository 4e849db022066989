-- Describes the worker that runs a task. silent: it has missed a heartbeat. lost: its lease has run out. stopping: the
-- task was asked to stop.
create or replace function sluice.explain_execution(p_id bigint, p_worker bigint, p_since timestamptz) returns json
language plpgsql stable as $$
begin
  return (
    select json_build_object(
      'worker', y.name, 'since', p_since,
      'heardAt', y.expires_at - y.lease_ms * interval '1 ms', 'leaseUntil', y.expires_at,
      'silent', coalesce(sluice.is_silent(y.expires_at, y.lease_ms), true),
      'lost', y.id is null or y.expires_at <= sluice.clock(),
      'stopping', exists (select from sluice.stop p where p.id = p_id))
    from (select p_worker as id) u
    left join sluice.worker y on y.id = u.id);
end $$;
