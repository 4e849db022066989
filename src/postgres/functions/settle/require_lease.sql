-- Refuses a worker that is not registered, or whose lease has run out.
create or replace function sluice.require_lease(p_worker bigint) returns void language plpgsql as $$
begin
  -- guard: lease -> test/postgres/attacks.test.ts: "attack 10: an unregistered or expired worker can neither claim nor settle"
  if /* guard:lease */ not /* end */ exists (
      select from sluice.worker where id = p_worker and expires_at > sluice.clock()) then
    perform sluice.refuse('lease_lost', 'this worker is not registered, or its lease has expired');
  end if;
end $$;
