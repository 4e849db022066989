-- Wakes workers for tasks of these streams, mostly one of each, that this transaction has made claimable. Each stream
-- is rung for separately, because different workers may serve them.
create or replace function sluice.ring_streams(p_streams int[]) returns void language plpgsql as $$
begin
  if p_streams is null or not exists (select from sluice.worker where asleep) then return; end if;
  perform sluice.ring(array[s], count(*)::int) from unnest(p_streams) s group by s;
end $$;
