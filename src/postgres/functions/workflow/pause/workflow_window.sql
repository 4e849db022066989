-- Sets the window of an each, from the moment this returns. Items that run beyond a lowered window finish. Takes the
-- exclusive barrier and the run's lock. Returns false if the node has no window, or is over.
create or replace function sluice.workflow_window(p_run bigint, p_node text, p_window int) returns boolean
language plpgsql set lock_timeout = '2s' as $$
declare v_node smallint;
begin
  if p_window is null or p_window < 1 then
    perform sluice.refuse('invalid_option', 'a window must be at least 1');
  end if;
  if not sluice.workflow_lock_exclusive(array[p_run]) then
    return false;
  end if;
  select n.node into v_node
  from sluice.workflow_run r
  join sluice.workflow_node n on n.run = r.id
  left join sluice.workflow_step s on s.graph = r.graph and s.node = n.node
  where r.id = p_run and coalesce(s.name, r.name) = p_node and n.lane is not null
    and sluice.workflow_is_live(n.state);
  if not found then
    return false;
  end if;
  update sluice.workflow_node set window_size = p_window where run = p_run and node = v_node;
  perform sluice.workflow_apply_windows(array[p_run]);
  return true;
end $$;
