-- Brings back these tasks, but for those whose fan-outs another transaction holds or that are being cancelled (kept).
-- Locks the fan-outs FOR UPDATE with SKIP LOCKED; the caller holds the lock of the tasks' run. Runs under the settings
-- of workflow_again_run. Returns the tasks it kept back, how many tasks came back, and how many of those it asked for
-- had failed or been cancelled.
create or replace function sluice.workflow_again_tasks(
  p_ids bigint[], out kept bigint[], out back int, out failed int, out cancelled int
) language plpgsql as $$
declare v_ids bigint[] := p_ids; v_mine bigint[];
begin
  -- guard: what tasks made is not waited for -> test/postgres/workflow/races.test.ts: "a retry does not wait for a session that has locked a map of the run"
  v_mine := array(
    select r.id from sluice.workflow_run r where r.parent = any (p_ids)
    for update /* guard:locked */ skip locked /* end */);
  -- guard: a task comes back after what it made has stopped -> test/postgres/workflow/again.test.ts: "a retried task comes back when the cancel of its map is complete, and not before"
  kept := array(
    select distinct r.parent from sluice.workflow_run r
    where r.parent = any (p_ids)
      and (/* guard:stopped */ r.stopping and r.finished_at is null or /* end */ r.id <> all (v_mine)));
  if kept <> '{}' then
    v_ids := array(select i from unnest(p_ids) i where i <> all (kept));
  end if;
  select count(*) filter (where d.state = 'failed'), count(*) filter (where d.state = 'cancelled')
  into failed, cancelled
  from unnest(v_ids) u(id)
  cross join lateral (select x.state from sluice.done x where x.id = u.id limit 1) d;
  back := sluice.retry_many(v_ids);
end $$;
