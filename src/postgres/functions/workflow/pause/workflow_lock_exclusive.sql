-- Takes the exclusive barrier and then the rows of these runs, by id. A transaction that holds a row may be stalled,
-- and all workers wait behind the barrier: so the barrier is released while this waits, by the rollback of a
-- subtransaction. Returns false if there is no such run.
create or replace function sluice.workflow_lock_exclusive(p_runs bigint[]) returns boolean
language plpgsql set lock_timeout = /* guard:patience */ '100ms' /* end */ as $$
declare v_barred boolean;
begin
  for v_try in 1..20 loop
    begin
      v_barred := false;
      perform sluice.barrier_exclusive();
      v_barred := true;
      perform from sluice.workflow_run where id = any (p_runs) order by id for update;
      return found;
    exception when lock_not_available then
      -- guard: the barrier is let go -> test/postgres/workflow/races.test.ts: "a pause of a locked run blocks no worker, and takes effect eventually"
      if not v_barred then
        raise;
      end if;
    end;
    perform pg_sleep(0.25);
  end loop;
  perform sluice.refuse('database_busy', 'another transaction has locked this run for seconds: try again');
end $$;
