-- Locks those of these runs that no other transaction holds; never waits. Returns the runs it locked and those that no
-- longer exist.
create or replace function sluice.workflow_lock_free(p_runs bigint[]) returns bigint[]
language plpgsql /* settings: index plans */ as $$
declare v_held bigint[];
begin
  -- guard: a note of a run in another's hand -> test/postgres/workflow/standing.test.ts: "a note of a run that another session has locked is skipped, and blocks no other"
  v_held := array(
    select r.id from sluice.workflow_run r where r.id = any (p_runs) order by r.id
    for no key update /* guard:locked */ skip locked /* end */);
  return v_held || array(
    select u.run
    from (select distinct run from unnest(p_runs) run) u
    left join lateral (select true as there from sluice.workflow_run r where r.id = u.run limit 1) k on true
    where k.there is null);
end $$;
