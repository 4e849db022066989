-- Returns the capacity of one lane, whether or not it has a row. A limit that was removed limits nothing. A window is
-- shut (0) while its run is paused or the rest of its items is being cancelled. The window of a node that has ended
-- stops nothing, and its row is deleted.
create or replace function sluice.lane_cap(p_lane bigint, p_limit int) returns int language plpgsql stable as $$
begin
  if sluice.lane_level(p_lane) = sluice.order_level() then return 1; end if;
  if sluice.lane_level(p_lane) = sluice.window_level() then
    return coalesce((
      select case
          when (n.failing or r.paused) and n.state in ('placing', 'running') then 0
          else /* guard:cap */ n.window_size /* end */
        end
      from sluice.workflow_node n
      join sluice.workflow_run r on r.id = n.run
      where n.lane = p_lane), sluice.no_limit());
  end if;
  return coalesce((
    select coalesce(l.per_key_override, l.per_key_declared)
    from sluice.limits l where l.id = p_limit), sluice.no_limit());
end $$;
