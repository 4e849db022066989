-- Moves tasks that are not running to history as cancelled, and returns their ids. The slots that they held become
-- notes, because this may run in a user's transaction, which must not hold a lane lock.
create or replace function sluice.cancel_waiting(p_ids bigint[], p_reason text) returns bigint[]
language plpgsql /* settings: index plans */ as $$
declare
  v_ids bigint[];
  v_now timestamptz := sluice.clock();
begin
  with gone as materialized (
    select * from sluice.cancel_take(p_ids)
  ), history as (
    insert into sluice.done (id, state, attempt, finished_at, outcome)
    select id, 'cancelled', attempt, v_now, json_build_object('reason', p_reason) from gone
  ), frees as (
    insert into sluice.dirty (lane, limit_id, freed)
    select l, 0, count(*) from gone cross join lateral unnest(gone.slots) l group by l
  ), stood as (
    -- A slot that came free while this transaction had the waiter locked was handed to nothing: its lane needs another
    -- look after the commit. Not windows: items are cancelled by the thousand, and the end of their node leaves a note.
    -- guard: a committed cancel leaves a note -> test/postgres/notes.test.ts: "the commit of a cancel lets the next claim start the task behind it"
    insert into sluice.dirty (lane, limit_id)
    select lane, max(limit_id) from gone
    where lane is not null and /* guard:note */ limit_id <> sluice.window_limit() /* end */
    group by lane
  )
  select coalesce(array_agg(id), '{}') into v_ids from gone;
  return v_ids;
end $$;
