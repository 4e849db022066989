-- Notes that fan-outs of these runs' tasks, as far as they are not over, are to be paused as their run is. The caller
-- has locked the runs, and a transaction that makes a fan-out locks its run too: so the fan-out is seen here, or has
-- taken over the state by itself.
create or replace function sluice.workflow_lead(p_runs bigint[], p_root bigint) returns void
language plpgsql /* settings: index plans */ as $$
begin
  insert into sluice.workflow_lead (run, root)
  select u.run, p_root
  from unnest(p_runs) u(run)
  where exists (select from sluice.workflow_run m where m.outer_run = u.run and m.finished_at is null)
  on conflict (run) do update set root = excluded.root;
end $$;
