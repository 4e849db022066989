-- A page of the items of an each by their index, after p_after: all, or those in one state, at most p_max. It looks at
-- no more items than it returns or, where a state is asked for, than p_look. Items that failed or were cancelled have
-- what is kept of the reason. Returns the items, and after which index to go on (next), null: there are no more.
create or replace function sluice.workflow_item_page(
  p_run bigint, p_node text, p_state text, p_after int, p_max int, p_look int, out items json, out next int
) language plpgsql stable /* settings: index plans */ as $$
declare
  v_node smallint; v_kind sluice.node_kind; v_n int; v_last int;
  v_look int := case when p_state is null then p_max else p_look end;
begin
  select n.node, n.kind into v_node, v_kind
  from sluice.workflow_run r
  join sluice.workflow_node n on n.run = r.id
  left join sluice.workflow_step s on s.graph = r.graph and s.node = n.node
  where r.id = p_run and not r.pruning and coalesce(s.name, r.name) = p_node;
  if not found then
    if not exists (select from sluice.workflow_run where id = p_run and not pruning) then
      perform sluice.refuse('run_not_found', 'there is no such run');
    end if;
    perform sluice.refuse('unknown_node', format('run %s has no node %s', p_run, to_json(p_node)));
  end if;
  if v_kind <> 'each' then
    perform sluice.refuse('invalid_option', format('node %s is not an each, so it has no items', to_json(p_node)));
  end if;
  select count(*), max(x.item),
    coalesce(json_agg(json_build_object(
      'index', x.item, 'task', x.id::text, 'state', x.state,
      'error', case when x.state in ('failed', 'cancelled') then json_build_object(
        'name', x.outcome ->> 'name', 'message', x.outcome ->> 'message',
        'code', x.outcome ->> 'code', 'reason', x.outcome ->> 'reason') end) order by x.item), '[]')
  into v_n, v_last, items
  from (
    select w.item, w.id, coalesce(d.state, t.state) as state, d.outcome
    from (
      select k.item, k.id from sluice.workflow_task k
      where k.run = p_run and k.node = v_node and k.item > p_after order by k.item limit v_look
    ) w
    left join lateral (
      select y.state::text as state, y.outcome
      from sluice.done y where y.id = w.id limit 1
    ) d on true
    -- What is in none of these tables waits, wherever that is. Not by task_state, which may walk all that wait at the
    -- window.
    left join lateral (
      select case
        when exists (select from sluice.running y where y.id = w.id) then 'running'
        when exists (select from sluice.scheduled y where y.id = w.id) then 'scheduled'
        when exists (select from sluice.suspect y where y.id = w.id)
          or sluice.ready_at(k.id, k.stream, k.rank, k.lanes) is not null then 'ready'
        else 'waiting' end as state
      from sluice.task k where d.state is null and k.id = w.id limit 1
    ) t on true
    where p_state is null or coalesce(d.state, t.state) = p_state
    order by w.item limit p_max
  ) x;
  if v_n < p_max then
    v_last := (
      select k.item from sluice.workflow_task k
      where k.run = p_run and k.node = v_node and k.item > p_after order by k.item offset v_look - 1 limit 1);
  end if;
  next := (
    select v_last
    where exists (select from sluice.workflow_task k where k.run = p_run and k.node = v_node and k.item > v_last));
end $$;
