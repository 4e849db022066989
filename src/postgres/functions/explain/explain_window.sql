-- Returns what holds the tasks at a window.
create or replace function sluice.explain_window(p_lane bigint) returns text language sql stable as $$
  select case when n.failing or r.stopping then 'stopping' when r.paused then 'paused' else 'window' end
  from sluice.workflow_node n
  join sluice.workflow_run r on r.id = n.run
  where n.lane = p_lane
$$;
