-- What tasks of these runs have fanned out, and is not over, is to be paused as their run is. The caller has locked the runs,
-- and whoever makes one locks its run too: so it is seen here, or has taken the state over by itself.
create or replace function sluice.workflow_lead(p_runs bigint[], p_root bigint) returns void language plpgsql
/* settings: index plans */ as $$
begin
  insert into sluice.workflow_lead (run, root) select u.run, p_root from unnest(p_runs) u(run)
  where exists (select from sluice.workflow_run m where m.outer_run = u.run and m.finished_at is null)
  on conflict (run) do update set root = excluded.root;
end $$;
