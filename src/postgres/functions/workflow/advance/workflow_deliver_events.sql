-- Delivers events to these runs, whose locks the caller holds. Each waiting node, in order, takes the oldest event of
-- its name that was sent before its deadline by the database's clock, so the outcome does not depend on when a keeper
-- runs. Costs one lookup per waiting node, however many events no node waits for. Returns the streams and the number of
-- new tasks, and whether some of them joined a window.
create or replace function sluice.workflow_deliver_events(
  p_runs bigint[], out streams int[], out made int, out joined boolean)
language plpgsql /* settings: index plans */ as $$
declare w record; v_payload json; v_over_runs bigint[]; v_over_nodes smallint[]; v record;
begin
  made := 0;
  joined := false;
  for w in
    select n.run, n.node, s.event, coalesce(t.due_at, 'infinity') as due_at
    from sluice.workflow_node n
    join sluice.workflow_run r on r.id = n.run
    join sluice.workflow_step s on s.graph = r.graph and s.node = n.node
    left join lateral (
      select x.due_at from sluice.workflow_timer x where x.run = n.run and x.node = n.node limit 1
    ) t on true
    where n.run = any (p_runs) and n.state = 'running' and n.kind = 'waitFor'
    order by n.run, n.node
  loop
    delete from sluice.workflow_event x
    where x.n = (
      select e.n from sluice.workflow_event e
      where e.run = w.run and e.name = w.event and e.created_at <= w.due_at
      order by e.n limit 1)
    returning x.payload into v_payload;
    continue when not found;
    delete from sluice.workflow_timer t where t.run = w.run and t.node = w.node;
    update sluice.workflow_node
    set state = 'succeeded', outcome = v_payload, finished_at = sluice.clock()
    where run = w.run and node = w.node;
    v_over_runs := v_over_runs || w.run;
    v_over_nodes := v_over_nodes || w.node;
  end loop;
  if v_over_runs is null then
    return;
  end if;
  select * into v from sluice.workflow_cascade(v_over_runs, v_over_nodes);
  streams := v.streams;
  made := v.made;
  joined := v.joined;
end $$;
