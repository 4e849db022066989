-- Admits for a step: to the lanes that it freed slots of and, with p_dirty, to those that notes name, in one ascending
-- pass. Returns the streams of tasks that passed their last lane.
create or replace function sluice.step_admit(p_lanes bigint[], p_dirty boolean) returns int[] language plpgsql as $$
declare v record; v_n int[];
begin
  if not p_dirty then return sluice.admit(p_lanes, null, null, null); end if;
  select * into v from sluice.take_dirty(500);
  if v.freed is not null then
    v_n := array_fill(1, array[coalesce(cardinality(p_lanes), 0)]) || v.freed_n;
    p_lanes := p_lanes || v.freed;
  end if;
  if p_lanes is null and v.joined is null then return null; end if;
  return sluice.admit(p_lanes, v_n, v.joined, v.joined_limits);
end $$;
