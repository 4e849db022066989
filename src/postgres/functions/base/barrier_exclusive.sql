-- Takes the barrier exclusively (see barrier_shared), for a change of a number. Requests behind an exclusive request
-- queue up, so each attempt waits 250 ms at most and then lets the others pass. Gives up after 20 attempts.
create or replace function sluice.barrier_exclusive() returns void language plpgsql set lock_timeout = '250ms' as $$
begin
  if current_setting('transaction_isolation') <> 'read committed' then
    perform sluice.refuse('isolation_level', 'a limit can be changed only in a READ COMMITTED transaction');
  end if;
  for v_try in 1..20 loop
    begin
      perform /* guard:barrier */ pg_advisory_xact_lock /* end */('sluice.limits'::regclass::oid::int, 0);
      return;
    exception when lock_not_available then
      if v_try = 20 then raise; end if;
      perform pg_sleep(0.25);
    end;
  end loop;
end $$;
