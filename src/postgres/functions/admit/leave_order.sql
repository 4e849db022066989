-- Order keys whose slot nobody took: those without a line go, those whose head is locked by a transaction that may yet
-- abort are postponed. The caller holds their locks.
create or replace function sluice.leave_order(p_lanes bigint[]) returns void language plpgsql as $$
declare v_locked_out bigint[];
begin
  with lane as materialized (
    select l as id, exists (select from sluice.waiting w where w.lane = l) as more from unnest(p_lanes) l
  ), emptied as (
    delete from sluice.lane n where n.id = any (array(select id from lane where not more))
  ), freed as (
    update sluice.lane n set used = 0 where n.id = any (array(select id from lane where more)) and n.used <> 0
  )
  select array_agg(id) filter (where more) into v_locked_out from lane;
  -- guard: a locked head is postponed -> test/postgres/attacks.test.ts: "attack 8: no task passes the locked head of an order key"
  if /* guard:locked-out */ v_locked_out is not null /* end */ then
    perform sluice.postpone(v_locked_out, array_fill(0, array[cardinality(v_locked_out)]));
  end if;
end $$;
