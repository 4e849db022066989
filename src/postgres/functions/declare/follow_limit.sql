-- Examines the next p_max lanes after a limit's number has changed: lanes with room for a waiter get a note, lanes
-- above the number become `excess`. Returns how many lanes were examined. The walk goes by the primary key over keys of
-- all limits: it is bounded all the same, and `lane_limit` has no order within a limit. The lock on its row in
-- `changed` lets one worker at a time do this; a locked row is skipped, so it has no place in the lock order.
create or replace function sluice.follow_limit(p_max int, p_limit int default null) returns int
language plpgsql /* settings: index plans */ as $$
declare
  v sluice.changed;
  v_n int;
  v_last bigint;
  v_cap int;
begin
  select * into v from sluice.changed c
  where p_limit is null or c.limit_id = p_limit
  order by c.limit_id
  limit 1 for update skip locked;
  if not found then return 0; end if;
  v_cap := sluice.cap_of(null, v.limit_id);
  with piece as materialized (
    select n.id, n.limit_id, n.used from sluice.lane n where n.id > v.after order by n.id limit p_max
  ), notes as (
    -- guard: waiters are woken when it is raised -> test/postgres/limits.test.ts: "waiters of thousands of keys are woken when their limit is raised"
    insert into sluice.dirty (lane, limit_id)
    select x.id, x.limit_id
    from piece x
    where x.limit_id = v.limit_id and /* guard:raised */ x.used < v_cap /* end */
      and exists (select from sluice.waiting w where w.lane = x.id)
  ), above as (
    -- guard: lanes above the number are found -> test/postgres/limits.test.ts: "ready tasks above a lowered limit of thousands of keys return to their lanes"
    insert into sluice.excess (limit_id, lane)
    select x.limit_id, x.id
    from piece x
    where x.limit_id = v.limit_id and /* guard:lowered */ x.used > v_cap /* end */
    on conflict do nothing
  )
  select count(*), max(id) into v_n, v_last from piece;
  if v_n = p_max then
    update sluice.changed set after = v_last where limit_id = v.limit_id;
  else
    delete from sluice.changed where limit_id = v.limit_id;
    delete from sluice.lowered
    where limit_id = v.limit_id
      and not exists (select from sluice.excess e where e.limit_id = v.limit_id);
  end if;
  return v_n;
end $$;
