-- Takes notes that wait to be looked at; those that another transaction has locked are skipped. Most of a look goes to
-- the newest, so that fresh work is not behind a backlog of notes, and a quarter to the oldest, so that the backlog
-- shrinks even while new ones arrive. Their order does not matter: `waiting` decides which task is next in a lane.
create or replace function sluice.take_dirty(p_max int,
  out joined bigint[], out joined_limits int[], out freed bigint[], out freed_n int[])
language plpgsql as $$
declare v_newest int := p_max - p_max / 4; v_tids tid[];
begin
  -- guard: the newest notes first -> test/postgres/notes.test.ts: "a new task is admitted by the next claim although thousands of notes are older"
  v_tids := array(
    select ctid from sluice.dirty order by n /* guard:newest */ desc /* end */ limit v_newest for update skip locked);
  if cardinality(v_tids) = v_newest then
    -- guard: and some of the oldest -> test/postgres/notes.test.ts: "old notes are processed although new ones keep coming"
    v_tids := v_tids || array(
      select ctid from sluice.dirty order by n limit /* guard:oldest */ p_max / 4 /* end */ for update skip locked);
  end if;
  with note as (
    delete from sluice.dirty where ctid = any (v_tids) returning lane, limit_id, dirty.freed
  ), joins as (
    select lane, max(limit_id) as limit_id from note where note.freed = 0 group by lane
  ), frees as (
    select lane, sum(note.freed)::int as n from note where note.freed > 0 group by lane
  )
  select (select array_agg(lane) from joins), (select array_agg(limit_id) from joins),
    (select array_agg(lane) from frees), (select array_agg(n) from frees)
  into joined, joined_limits, freed, freed_n;
end $$;
