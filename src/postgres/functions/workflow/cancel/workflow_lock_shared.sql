-- Cancel: a run, the rest of its tasks, and their fan-outs.

-- Takes the barrier shared and then the rows of these runs, by id. A transaction that holds a row may be stalled, and a
-- change of a limit waits for the exclusive barrier: so both locks are released after a moment, by the rollback of a
-- subtransaction, and requested again, for ten seconds in all. Returns false if there is no such run.
create or replace function sluice.workflow_lock_shared(p_runs bigint[]) returns boolean
language plpgsql set lock_timeout = /* guard:patience */ '300ms' /* end */ as $$
begin
  for v_try in 1..25 loop
    begin
      perform sluice.barrier_shared();
      -- guard: the shared barrier is let go -> test/postgres/workflow/again.test.ts: "a retry of a run that is locked blocks no change of a limit"
      perform from sluice.workflow_run where id = any (p_runs) order by id /* guard:lock */ for /* end */ no key update;
      return found;
    exception when lock_not_available then
      null;
    end;
    -- Random, so that it never keeps step with a transaction that queues for the barrier a moment at a time.
    perform pg_sleep(0.05 + random() * 0.1);
  end loop;
  perform sluice.refuse('database_busy', 'another transaction has locked this run for seconds: try again');
end $$;
