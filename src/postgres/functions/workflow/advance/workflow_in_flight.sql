-- The items of an each that are to be cancelled first: those that run, those that have passed the window and so stand
-- before the first one that waits at it, and the p_next that follow. Ids ascend with items. every: there are no others.
create or replace function sluice.workflow_in_flight(
  p_run bigint, p_node smallint, p_next int, out ids bigint[], out every boolean
) language plpgsql stable /* settings: index plans */ as $$
declare v_item int; v_total int; v_first bigint; v_last bigint;
begin
  select case when n.lane is null then 0 else coalesce(w.item, n.total) end, n.total into v_item, v_total
  from sluice.workflow_node n
  left join lateral (
    select k.item from sluice.workflow_task k
    where k.id = (select x.id from sluice.waiting x where x.lane = n.lane order by x.place, x.id limit 1) limit 1
  ) w on true
  where n.run = p_run and n.node = p_node;
  v_first := (
    select w.id from sluice.workflow_task w where w.run = p_run and w.node = p_node order by w.item limit 1);
  v_last := (
    select w.id from sluice.workflow_task w where w.run = p_run and w.node = p_node order by w.item desc limit 1);
  every := v_item <= 500 and v_total - v_item <= p_next;
  ids := array(
    select distinct f.id
    from (
      (select x.id
        from (
          select r.id from sluice.running r where r.id between v_first and v_last order by r.id limit 10000
        ) x
        cross join lateral (select k.run, k.node from sluice.workflow_task k where k.id = x.id limit 1) w
        where w.run = p_run and w.node = p_node limit 1000)
      union all
      (select w.id from sluice.workflow_task w
        where w.run = p_run and w.node = p_node and w.item < v_item order by w.item desc limit 500)
      union all
      (select w.id from sluice.workflow_task w
        where w.run = p_run and w.node = p_node and w.item >= v_item order by w.item limit p_next)
    ) f
    left join lateral (select true as ended from sluice.done d where d.id = f.id limit 1) d on true
    where d.ended is null);
end $$;
