-- Finds the next tasks of a node that are to come back: those behind the item p_item (null: there are no more) that
-- failed or were cancelled, of which p_left are left. p_pending: how many were found before and are kept back. At most
-- p_room tasks, among at most 20 * p_max items; none if p_max are kept back already. Reads only. Runs under the
-- settings of workflow_again_run. Returns the tasks and the item to go on behind, null: that was all.
create or replace function sluice.workflow_again_find(
  p_run bigint, p_node smallint, p_total int, p_item int, p_left int, p_pending int, p_max int, p_room int,
  out ids bigint[], out last int
) language plpgsql as $$
declare v_want int := least(p_left, p_room);
begin
  ids := '{}';
  last := p_item;
  if p_item is null or p_pending >= p_max then
    return;
  end if;
  select coalesce(array_agg(w.id), '{}'), max(w.item) into ids, last
  from (
    select k.id, k.item
    from sluice.workflow_task k
    cross join lateral (
      select from sluice.done d where d.id = k.id and sluice.workflow_is_unsuccessful(d.state) limit 1
    ) d
    where k.run = p_run and k.node = p_node and k.item > p_item and k.item <= p_item + 20 * p_max
    order by k.item limit v_want
  ) w;
  last := case
    when cardinality(ids) = p_left then null
    when cardinality(ids) = v_want then last
    when p_total > p_item + 20 * p_max + 1 then p_item + 20 * p_max end;
end $$;
