-- Order keys: lanes of one slot. A task that leaves one frees it, so the head of its line is next or nobody, and the
-- row of a lane changes only when nobody comes after. Returns the lanes that the admitted tasks want next, with their
-- limits, and the streams of tasks with no lane left. The same steps as for other lanes (admit_level), each
-- in a statement of its own for the same reason.
create or replace function sluice.admit_order(p_freed bigint[], p_joined bigint[],
  out lanes bigint[], out limits int[], out streams int[])
language plpgsql as $$
#variable_conflict use_column
declare v_born bigint[]; v_locked bigint[]; v_idle bigint[]; v_free bigint[]; v_taken bigint[];
begin
  if p_joined is not null then
    with born as (
      insert into sluice.lane (id, limit_id, cap, used) select l, 0, 1, 1 from unnest(p_joined) l order by l
      on conflict do nothing returning id
    ) select array_agg(id) into v_born from born;
  end if;
  -- guard: order lane lock -> test/postgres/attacks.test.ts: "two concurrent admissions of an order key start one task"
  with locked as (
    select n.id, n.used from sluice.lane n where n.id = any (case when p_joined is null then p_freed
      else array(select l from unnest(p_freed || p_joined) l except select l from unnest(v_born) l) end)
    order by n.id /* guard:lane-lock */ for update /* end */
  )
  select array_agg(id), array_agg(id) filter (where p_joined is null or used = 0 or id = any (p_freed)),
    array_agg(id) filter (where used = 0)
  into v_locked, v_free, v_idle from locked;
  if p_joined is not null then
    v_free := v_free || v_born;
    -- Deleted between the two statements: the next claim looks.
    insert into sluice.dirty (lane, limit_id)
    select l, 0 from unnest(p_joined) l
    where /* guard:vanished */ l <> all (coalesce(v_locked || v_born, '{}')) /* end */;
  end if;
  if v_free is null then return; end if;
  /* guard:after-count */ /* end */
  -- guard: head or nothing -> test/postgres/attacks.test.ts: "attack 8: no task passes the locked head of an order key"
  with head as (
    select h.tid from unnest(v_free) l(id) cross join lateral (
      select ctid as tid from sluice.waiting where lane = l.id
      order by /* guard:place */ place, id /* end */ limit /* guard:head */ 1 /* end */) h
  ), moved as (
    delete from sluice.waiting where ctid = any (array(
      select ctid from sluice.waiting where ctid = any (array(select tid from head)) for update skip locked))
    returning *
  ), passed as (
    -- guard: order keys take turns -> test/postgres/turns.test.ts: "a new key waits for at most one round of the others: %s"
    select id, stream, gate, rank, attempt, lanes,
      coalesce(turn, /* guard:turns */ sluice.next_turn((select last_value from sluice.task_id)) /* end */) as turn
    from (select * from moved where cardinality(lanes) = 1 order by id) m
  ), to_ready as (
    insert into sluice.ready (id, stream, rank, attempt, turn, lanes)
    select id, stream, rank, attempt, turn, lanes from passed where gate = 0
  ), to_gated as (
    insert into sluice.gated (id, stream, gate, rank, attempt, turn, lanes)
    select id, stream, gate, rank, attempt, turn, lanes from passed where gate <> 0
  ), to_waiting as (
    insert into sluice.waiting (id, lane, place, rank, attempt, held, stream, gate, lanes, lane_limits, turn)
    select id, lanes[2], sluice.lane_place(lanes[2], rank), rank, attempt, 1, stream, gate, lanes, lane_limits, turn
    from moved where cardinality(lanes) > 1
  )
  select array_agg(lane), array_agg(lanes[2]) filter (where cardinality(lanes) > 1),
    array_agg(lane_limits[2]) filter (where cardinality(lanes) > 1),
    array_agg(distinct stream) filter (where cardinality(lanes) = 1)
  into v_taken, lanes, limits, streams from moved;

  if v_idle is not null then update sluice.lane set used = 1 where id = any (v_idle) and id = any (v_taken); end if;
  if cardinality(v_taken) < cardinality(v_free) or v_taken is null then
    perform sluice.leave_order(array(select l from unnest(v_free) l where l <> all (coalesce(v_taken, '{}'))));
  end if;
end $$;
