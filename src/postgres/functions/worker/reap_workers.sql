-- Deletes workers whose lease has run out, and returns how many. Rows that are locked are skipped.
create or replace function sluice.reap_workers() returns int language plpgsql set jit = off as $$
declare
  v_now timestamptz := sluice.clock();
  v_n int;
begin
  -- A lease that ends further ahead than its length: the clock was set back. A live worker's next heartbeat corrects
  -- it; a dead worker's tasks would wait until the clock has caught up.
  -- guard: a clock that was set back -> test/postgres/clock.test.ts: "a dead worker's lease ends within a lease after the clock was set back"
  update sluice.worker set expires_at = v_now + lease_ms * interval '1 millisecond'
  where id = any (array(
    select id from sluice.worker
    where /* guard:clock */ expires_at /* end */ > v_now + (lease_ms + 1000) * interval '1 millisecond'
    for update skip locked));
  delete from sluice.worker where id = any (array(
    select id from sluice.worker where expires_at <= v_now for update skip locked));
  get diagnostics v_n = row_count;
  return v_n;
end $$;
