-- Locks lanes in ascending order. A statement of its own: what is counted and taken must be read by a later snapshot
-- than the lock, or two completions hand out the same slot (READ COMMITTED). Those in p_born were inserted by this
-- transaction, which is as good as a lock.
--
-- Returns the lanes that are there, how many slots came back to each (one more if it was born with one out), and how
-- many it can give. was_full: those whose slots were all out.
create or replace function sluice.lock_lanes(p_new bigint[], p_new_limits int[], p_freed bigint[], p_freed_n int[],
  p_born bigint[], out lanes bigint[], out returned int[], out room int[], out was_full bigint[])
language plpgsql as $$
#variable_conflict use_column
begin
  -- guard: lane lock -> test/postgres/attacks.test.ts: "two concurrent hand-overs in a lane never exceed its capacity"
  with touched as (
    select coalesce(n.lane, f.lane) as lane, coalesce(f.n, 0) as freed, n.limit_id
    from unnest(p_new, p_new_limits) n(lane, limit_id)
    full join unnest(p_freed, p_freed_n) f(lane, n) on f.lane = n.lane
  ), locked as (
    -- The number of a limit is read under the barrier, so no change of it can slip between this read and the commit.
    -- guard: caps follow the limit -> test/postgres/limits.test.ts: "a lowered limit per key admits nothing until its use is below it"
    select id, coalesce(/* guard:window */ cap /* end */, (
      select /* guard:cap */ coalesce(x.per_key_override, x.per_key_declared) /* end */
      from sluice.limits x where x.id = limit_id), sluice.no_limit()) - used as room
    from sluice.lane
    where id = any (array(select lane from touched where lane <> all (coalesce(p_born, '{}'))))
    order by id /* guard:lane-lock */ for update /* end */
  ), held as (
    select t.lane, t.freed as returned, l.room + t.freed as room, l.room <= 0 as was_full
    from touched t join locked l on l.id = t.lane
    union all
    select t.lane, t.freed + 1, coalesce(n.cap, (
      select /* guard:cap */ coalesce(x.per_key_override, x.per_key_declared) /* end */
      from sluice.limits x where x.id = n.limit_id), sluice.no_limit()) - n.used + t.freed + 1, false
    from touched t join sluice.lane n on n.id = t.lane where t.lane = any (p_born)
  ), vanished as (
    -- Deleted between the two statements. Trying again here would break the ascending order: the next claim looks.
    insert into sluice.dirty (lane, limit_id) select lane, limit_id from touched t
    where /* guard:vanished */ limit_id is not null /* end */ and not exists (select from held h where h.lane = t.lane)
  )
  select array_agg(lane), array_agg(returned), array_agg(greatest(0, room)),
    array_agg(lane) filter (where was_full)
  into lanes, returned, room, was_full from held;
  /* guard:snapshot */ /* end */
end $$;
