-- Wakes sleeping workers after a step. p_ring: streams of tasks that the step let through or left a slot for. Its own
-- streams are rung only if it claims nothing itself.
create or replace function sluice.step_ring(p_worker bigint, p_streams int[], p_n int, p_claimed int, p_ring int[],
  p_tells boolean) returns void language plpgsql as $$
declare v_ring int[];
begin
  if p_ring is not null then
    v_ring := array(select x from unnest(p_ring) x where p_n <= 0 or x <> all (p_streams));
    if v_ring <> '{}' then perform sluice.ring_streams(v_ring); end if;
  end if;
  if p_tells then
    update sluice.worker w set asleep = p_claimed < p_n where w.id = p_worker and w.asleep <> (p_claimed < p_n);
  end if;
  -- The worker has all that it asked for, and there may be more: the next sleepers look. A claim that is larger than a
  -- batch belongs to a worker with a backlog, which tells nothing but must not keep the backlog to itself.
  if p_claimed = p_n and (p_tells or p_n > 50) and exists (select from sluice.worker w where w.asleep) then
    perform sluice.ring(p_streams, p_n);
  end if;
end $$;
