-- Deletes history that is too old. The table is swept by blocks, from where the last call of any process stopped. A
-- turn begins every 5 s and covers 1/120 of the table, so that the whole table is seen every 10 minutes, in steps of
-- at most 128 blocks (1 MB). Locks the row of sweep, or returns; skips rows of done that are locked.
-- pruned: how many. rested: this turn's share is done, or another process is working on it.
create or replace function sluice.prune_done(
  p_succeeded_ms bigint, p_failed_ms bigint, p_cancelled_ms bigint, out pruned int, out rested boolean)
language plpgsql as $$
declare
  v sluice.sweep;
  v_now timestamptz := sluice.clock();
  v_blocks int;
  v_progress boolean;
  v_total bigint := pg_relation_size('sluice.done') / current_setting('block_size')::int;
begin
  pruned := 0;
  rested := true;
  select * into v from sluice.sweep for update skip locked;
  if not found then return; end if;
  if v.turn_at <= v_now - interval '5 seconds' then
    v.turn_at := v_now;
    v.due := greatest(128, v_total / 120);
  end if;
  if v.due <= 0 then return; end if;
  if v.block >= v_total then v.block := 0; end if;
  v_blocks := least(v.due, 128);
  v_progress := exists (select from sluice.progress);
  with gone as (
    delete from sluice.done where ctid = any (array(
      select d.ctid from sluice.done d
      where d.ctid >= format('(%s,0)', v.block)::tid
        and d.ctid < format('(%s,0)', v.block + v_blocks)::tid
        and d.finished_at < v_now - case d.state
            when 'succeeded' then p_succeeded_ms
            when 'failed' then p_failed_ms
            else p_cancelled_ms
          end * interval '1 millisecond'
        and not exists (select from sluice.block b where b.id = d.id)
        -- guard: members are pruned with their run -> test/postgres/workflow/keep.test.ts: "the tasks of a run are pruned with it and not before"
        /* guard:members */ and not exists (select from sluice.workflow_task w where w.id = d.id) /* end */
      for update of d skip locked))
    returning id, attempt
  ), tasks as (
    delete from sluice.task where id = any (array(select id from gone))
  ), attempts as (
    -- A task that ended at its first attempt has none, unless it was released or retried by hand: see prune_expired.
    delete from sluice.attempt where id = any (array(select id from gone where attempt > 1))
  ), reports as (
    delete from sluice.progress where id = any (array(select id from gone where v_progress))
  )
  select count(*) into pruned from gone;
  v.due := v.due - v_blocks;
  rested := v.due <= 0;
  update sluice.sweep set block = v.block + v_blocks, due = v.due, turn_at = v.turn_at;
end $$;
