-- Until when all slots of a gate were out, the last time: infinity if they are (what a step has freed itself is not
-- back yet), -infinity if they never were. Out of them all, it opened with the first credit; above a lowered number
-- with a later one, for which the last is taken. An unlocked read, like gate_room.
create or replace function sluice.full_until(p_gate int) returns timestamptz language plpgsql stable as $$
begin
  return coalesce((
    select case when g.used < g.cap then g.full_at
      else coalesce((
        select case when sum(c.n) <= g.used - g.cap then null when g.used = g.cap then min(c.at) else max(c.at) end
        from sluice.credit c where c.gate = p_gate), 'infinity') end
    from sluice.gate g where g.id = p_gate), '-infinity');
end $$;
