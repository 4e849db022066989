-- Asks running tasks to stop. asked: those of p_ids that run. workers: the workers of those that nothing had asked
-- before.
create or replace function sluice.cancel_running(
  p_ids bigint[], p_reason text, out asked bigint[], out workers bigint[])
language plpgsql /* settings: index plans */ as $$
begin
  with running as materialized (
    select y.id, y.worker
    from (select distinct unnest(p_ids) as id) u
    cross join lateral (select k.id, k.worker from sluice.running k where k.id = u.id limit 1) y
  ), stops as (
    insert into sluice.stop (id, reason)
    select r.id, p_reason from running r where not exists (select from sluice.stop s where s.id = r.id)
    returning stop.id
  )
  select coalesce((select array_agg(running.id) from running), '{}'),
    array(select distinct r.worker from stops s join running r on r.id = s.id)
  into asked, workers;
end $$;
