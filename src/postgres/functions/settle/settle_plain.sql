-- Successes of which nothing is kept but that they succeeded: less to start, and no results to find again.
create or replace function sluice.settle_plain(p_ids bigint[], p_claims bigint[], p_keep boolean) returns sluice.gone
language plpgsql as $$
declare v_gone sluice.gone;
begin
  with gone as (
    delete from sluice.running where ctid = any (array(
      -- guard: fence of successes without a result -> test/postgres/attacks.test.ts: "attack 2: a batch with the same id twice settles it once, under its own claim"
      select x.tid from unnest(p_ids, p_claims) v(id, claim)
      cross join lateral (
        select r.ctid as tid from sluice.running r
        where r.id = v.id /* guard:fence */ and r.claim = v.claim /* end */ limit 1) x))
    returning *
  ), history as (
    insert into sluice.done (id, state, attempt, worker, started_at, finished_at)
    select id, 'succeeded', attempt, worker, started_at, sluice.clock() from gone where p_keep
  )
  select array_agg(id), (select array_agg(l) from gone, unnest(gone.lanes) l), array_agg(gate), array_agg(stream_gate)
  into v_gone from gone;
  if not p_keep then delete from sluice.task where id = any (v_gone.settled); end if;
  return v_gone;
end $$;
