-- Admission: the only place that moves tasks through lanes.
--
-- Lock order of every transaction here: barrier (shared) -> running rows -> crash -> workflow_run by id -> lanes by
-- (level, id) -> gates by id. A transaction that changes what a lane holds locks its row, which guards `used` and the
-- decision which of `waiting` is next. One pass per transaction, ascending: a second pass would have to lock below what
-- it holds, and two such transactions wait for each other (attack 4).
--
-- p_freed: lanes with freed slots, p_freed_n of each (null: one each, a lane may repeat). p_joined: lanes that a task
-- joined, with the limit of each. The caller holds the barrier. Returns the streams of tasks that passed their last
-- lane: a worker that serves them may sleep, and no enqueue rings for these.
create or replace function sluice.admit(p_freed bigint[], p_freed_n int[], p_joined bigint[], p_joined_limits int[])
returns int[] language plpgsql /* settings: index plans */ as $$
declare
  v_joined bigint[] := p_joined; v_limits int[] := p_joined_limits;
  v_new bigint[]; v_new_limits int[]; v_freed bigint[]; v_freed_n int[];
  v_onward record; v_streams int[];
begin
  if p_joined is null and p_freed_n is null
      and sluice.lane_level(p_freed[1]) = sluice.window_level() and p_freed[1] = all (p_freed) then
    select * into v_onward from sluice.admit_window(p_freed[1], cardinality(p_freed));
    if v_onward.lanes is null then return v_onward.streams; end if;
    v_streams := v_onward.streams;
    v_joined := v_onward.lanes;
    v_limits := v_onward.limits;
    p_freed := null;
  end if;
  v_freed := array(select l from unnest(p_freed) l where sluice.lane_level(l) = sluice.order_level());
  v_new := array(select l from unnest(p_joined) l where sluice.lane_level(l) = sluice.order_level());
  if v_freed <> '{}' or v_new <> '{}' then
    select * into v_onward from sluice.admit_order(nullif(v_freed, '{}'), nullif(v_new, '{}'));
    v_streams := v_onward.streams;
    v_joined := v_joined || v_onward.lanes;
    v_limits := v_limits || v_onward.limits;
    if v_onward.lanes is null and not exists (
        select from unnest(p_freed || p_joined) l where sluice.lane_level(l) > sluice.order_level()) then
      return v_streams;
    end if;
  end if;
  for v_level in sluice.window_level()..sluice.key_level() loop
    select array_agg(x.lane order by x.lane), array_agg(x.limit_id order by x.lane) into v_new, v_new_limits from (
      select u.lane, max(u.limit_id) as limit_id from unnest(v_joined, v_limits) u(lane, limit_id)
      where sluice.lane_level(u.lane) = v_level group by u.lane) x;
    select array_agg(x.lane order by x.lane), array_agg(x.n order by x.lane) into v_freed, v_freed_n from (
      select u.lane, sum(coalesce(u.n, 1))::int as n from unnest(p_freed, p_freed_n) u(lane, n)
      where sluice.lane_level(u.lane) = v_level group by u.lane) x;
    continue when v_new is null and v_freed is null;
    select * into v_onward from sluice.admit_level(v_level, v_new, v_new_limits, v_freed, v_freed_n);
    v_joined := v_joined || v_onward.lanes;
    v_limits := v_limits || v_onward.limits;
    v_streams := v_streams || v_onward.streams;
  end loop;
  return v_streams;
end $$;
