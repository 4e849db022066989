-- Enqueues one task now, as a tick would, whatever the state of the schedule, which it does not change. Returns the
-- task's id, or null if there is no such schedule.
create or replace function sluice.trigger_schedule(p_name text, p_mark text) returns bigint language plpgsql as $$
declare
  v sluice.schedule;
  v_tick text := to_char(sluice.clock() at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"');
begin
  select * into v from sluice.schedule where name = p_name;
  if not found then return null; end if;
  return (sluice.enqueue_ticks(v, array[v_tick], p_mark, false))[1];
end $$;
