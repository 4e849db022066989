-- Returns the node that a window belongs to. live: it has not ended. stopping: its items are being cancelled.
create or replace function sluice.explain_node(
  p_lane bigint,
  out run bigint, out name text, out live boolean, out paused boolean, out stopping boolean, out window_size int)
language plpgsql stable as $$
begin
  select k.run, coalesce(s.name, r.name), k.state in ('placing', 'running'), r.paused, k.failing or r.stopping,
    k.window_size
  into run, name, live, paused, stopping, window_size
  from sluice.workflow_node k
  join sluice.workflow_run r on r.id = k.run
  left join sluice.workflow_step s on s.graph = r.graph and s.node = k.node
  where k.lane = p_lane;
end $$;
