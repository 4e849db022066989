-- One task now, as a tick would make it, whatever the state of the schedule. Changes nothing of it.
create or replace function sluice.trigger_schedule(p_name text, p_mark text) returns bigint language plpgsql as $$
declare v sluice.schedule;
begin
  select * into v from sluice.schedule where name = p_name;
  if not found then return null; end if;
  return (sluice.enqueue_ticks(v, array[to_char(sluice.clock() at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')], p_mark, false))[1];
end $$;
