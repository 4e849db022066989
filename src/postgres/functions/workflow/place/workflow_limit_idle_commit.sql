-- workflow_limit_idle for a transaction that has locked runs: only the commit is to come, so five seconds are enough.
create or replace function sluice.workflow_limit_idle_commit() returns void language plpgsql as $$
begin
  if current_setting('idle_in_transaction_session_timeout') = '30s' then
    perform set_config('idle_in_transaction_session_timeout', '5s', true);
  end if;
end $$;
