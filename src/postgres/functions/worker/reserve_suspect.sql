-- Reserves a suspect for a worker that empties itself for it, and returns its id. A worker keeps its reservation; it
-- ends with the worker. Skips rows that are locked.
create or replace function sluice.reserve_suspect(p_worker bigint, p_streams int[]) returns bigint language sql as $$
  update sluice.suspect set reserved_by = p_worker
  where id = (
    select s.id from sluice.suspect s
    where s.stream = any (p_streams)
      and not exists (select from sluice.stream t where t.id = s.stream and t.paused)
      and (
        s.reserved_by is null
        or s.reserved_by = p_worker
        or not exists (
          select from sluice.worker w where w.id = s.reserved_by and w.expires_at > sluice.clock()))
    order by (s.reserved_by = p_worker) desc nulls last, s.id
    limit 1 for update skip locked)
  returning id
$$;
