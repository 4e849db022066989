-- A step that found nothing to take gives back the slots that it freed. Returns the streams of other workers that could
-- use them, if a worker sleeps.
create or replace function sluice.leave_slots(p_freed sluice.freed, p_streams int[], p_n int) returns int[]
language plpgsql as $$
begin
  perform sluice.give_back(p_freed.gates, p_freed.gates_n);
  if not exists (select from sluice.worker w where w.asleep) then return null; end if;
  if p_n <= 0 then perform sluice.ring(p_streams, (select sum(n) from unnest(p_freed.gates_n) n)::int); end if;
  return (sluice.rivals(p_freed.gates, p_streams)).streams;
end $$;
