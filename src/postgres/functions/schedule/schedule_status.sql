-- Schedules with the type and queue of their tasks, without the input.
create or replace view sluice.schedule_status as
  select c.name, s.type, s.queue, c.cron, c.time_zone, c.every_ms, c.missed, c.enabled, c.paused,
    c.next_at, c.last_at, c.last_task, c.trouble, c.digest, c.revision,
    octet_length(c.input::text) as input_bytes
  from sluice.schedule c
  join sluice.stream s on s.id = c.stream;
