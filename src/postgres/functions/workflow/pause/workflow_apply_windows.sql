-- Sets the lanes of these runs' windows to what lane_cap says, and rings. Only under the exclusive barrier, like
-- limits.
create or replace function sluice.workflow_apply_windows(p_runs bigint[]) returns void language plpgsql as $$
begin
  update sluice.lane l
  set cap = sluice.lane_cap(l.id, sluice.window_limit())
  where l.id = any (array(
    select lane from sluice.workflow_node
    where run = any (p_runs) and state = 'running' and lane is not null order by lane));
  insert into sluice.dirty (lane, limit_id)
  select l.id, sluice.window_limit() from sluice.lane l
  where l.used < l.cap
    and l.id = any (array(
      select lane from sluice.workflow_node where run = any (p_runs) and state = 'running' and lane is not null));
  insert into sluice.lowered (limit_id)
  select sluice.window_limit()
  where exists (
    select from sluice.lane l
    where l.used > l.cap
      and l.id = any (array(
        select lane from sluice.workflow_node where run = any (p_runs) and lane is not null)))
  on conflict (limit_id) do update set turn = 0;
  perform sluice.ring(array(
    select distinct stream from sluice.workflow_node
    where run = any (p_runs) and state = 'running' and stream is not null), 50);
end $$;
