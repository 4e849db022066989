-- Ends the stuck state of kinds that can run again, and after a second also of kinds that may run at all: a total or
-- key whose slots are always in use never shows room, and a task must stand in its line to be next.
create or replace function sluice.unstick() returns void language plpgsql as $$
declare
  v_now timestamptz := sluice.clock();
begin
  -- guard: what is stuck tries again -> test/postgres/yield.test.ts: "a task that released its key slot is not overtaken forever at a busy total"
  delete from sluice.stuck s
  where case when s.lane = 0 then sluice.is_open(s.stream, s.gate, false) else sluice.has_room(s.lane) end
    or s.at not between v_now - interval '1 second' and v_now
      and /* guard:unstick */ sluice.may_run /* end */(s.stream, s.gate);
end $$;
