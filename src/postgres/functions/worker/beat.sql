-- Renews a worker's lease and stores its load. Locks the worker's row.
-- alive: false when the lease has run out, even if nothing has reaped it yet: then all its tasks are lost.
-- stops, stop_reasons: running tasks that were asked to stop. suspect: a task that the worker is to empty itself for.
-- on_call, reserve: as in go_on_call.
create or replace function sluice.beat(
  p_worker bigint, p_available int, p_memory bigint, p_draining boolean,
  p_pressure text default 'normal', p_pressure_reasons text[] default '{}', p_busy boolean default false,
  out alive boolean, out stops bigint[], out stop_reasons text[], out suspect bigint, out on_call boolean,
  out reserve int)
language plpgsql as $$
declare
  v_streams int[];
begin
  update sluice.worker set
    expires_at = sluice.clock() + lease_ms * interval /* guard:lease */ '1 millisecond' /* end */,
    capacity_available = p_available, memory_bytes = p_memory, draining = p_draining,
    pressure = p_pressure, pressure_reasons = p_pressure_reasons, busy = p_busy
  where id = p_worker and expires_at > sluice.clock()
  returning streams, on_call_since is not null into v_streams, on_call;
  alive := found;
  if not alive then return; end if;
  reserve := (select c.reserve from sluice.crew_of(v_streams) c);
  if exists (select from sluice.stop) then
    select array_agg(s.id), array_agg(s.reason)
    into stops, stop_reasons
    from sluice.stop s
    cross join lateral (
      select 1 from sluice.running r where r.id = s.id and r.worker = p_worker limit 1) r;
  end if;
  if exists (select from sluice.suspect) and not p_draining then
    suspect := sluice.reserve_suspect(p_worker, v_streams);
  end if;
end $$;
