-- Violations of tasks: in two states or in none, or waiting for runs that have ended or do not exist.
create or replace function sluice.task_violations()
returns table (what text, id bigint, used bigint, cap bigint, held bigint) language sql stable as $$
  with place as (
    select id from sluice.ready
    union all select id from sluice.gated
    union all select id from sluice.waiting
    union all select id from sluice.scheduled
    union all select id from sluice.parked
    union all select id from sluice.parent
    union all select id from sluice.suspect
    union all select id from sluice.running
    union all select id from sluice.done
  )
  select 'task in two states', id, null::bigint, null::bigint, count(*) from place group by id having count(*) > 1
  union all
  select 'task in no state', t.id, null, null, 0
  from sluice.task t
  where not exists (select from place p where p.id = t.id)
  union all
  select 'a parent sleeps beside children that ended', p.id, null, null, r.id
  from sluice.parent p
  join sluice.workflow_run r on r.id = any (p.runs)
  where r.finished_at is not null
  union all
  select 'a parent sleeps without children', p.id, null, null, null
  from sluice.parent p
  where not exists (select from sluice.workflow_run r where r.id = any (p.runs))
$$;
