-- Deletes rows that are no longer needed: waits and idempotency keys that have expired, stops and crashes of tasks
-- that have ended, attempts and progress of tasks that left no history, credit of limits that were removed. Returns how
-- many idempotency keys, at most p_max.
create or replace function sluice.prune_expired(p_max int) returns int
language plpgsql /* settings: index plans */ as $$
declare
  v_n int;
  v_now timestamptz := sluice.clock();
begin
  delete from sluice.awaited where until < v_now;
  delete from sluice.stop s
  where not exists (select from sluice.task t where t.id = s.id)
    or exists (select from sluice.done d where d.id = s.id);
  delete from sluice.crash c
  where not exists (select from sluice.task t where t.id = c.id)
    or exists (select from sluice.done d where d.id = c.id);
  perform sluice.prune_leftovers(10000);
  delete from sluice.credit c where not exists (select from sluice.gate g where g.id = c.gate);
  delete from sluice.idempotency where ctid = any (array(
    select ctid from sluice.idempotency
    where expires_at < v_now
    order by expires_at
    limit p_max for update skip locked));
  get diagnostics v_n = row_count;
  return v_n;
end $$;
