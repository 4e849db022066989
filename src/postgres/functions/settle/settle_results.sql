-- Successes with results, or some that are awaited.
create or replace function sluice.settle_results(p_ids bigint[], p_claims bigint[], p_results text[], p_keep boolean,
  p_kept_ids bigint[]) returns sluice.gone language plpgsql as $$
declare v_gone sluice.gone;
begin
  with outcome as materialized (
    select u.id, u.claim, u.result, x.tid from unnest(p_ids, p_claims, p_results) u(id, claim, result)
    -- guard: fence -> test/postgres/attacks.test.ts: "attack 2: a batch with the same id twice settles it once, under its own claim"
    cross join lateral (
      select r.ctid as tid from sluice.running r
      where r.id = u.id /* guard:fence */ and r.claim = u.claim /* end */ limit 1) x
  ), gone as (
    delete from sluice.running where ctid = any (array(select tid from outcome)) returning *
  ), history as (
    insert into sluice.done (id, state, attempt, worker, started_at, finished_at, outcome)
    select g.id, 'succeeded', g.attempt, g.worker, g.started_at, sluice.clock(), o.result::json from gone g
    left join (select distinct on (id) id, result from outcome where p_results is not null) o on o.id = g.id
    where p_keep or g.id = any (p_kept_ids)
  ), forgotten as (
    delete from sluice.task where id = any (array(
      select id from gone where not p_keep and id <> all (coalesce(p_kept_ids, '{}'))))
  )
  select array_agg(id), (select array_agg(l) from gone, unnest(gone.lanes) l), array_agg(gate), array_agg(stream_gate)
  into v_gone from gone;
  return v_gone;
end $$;
