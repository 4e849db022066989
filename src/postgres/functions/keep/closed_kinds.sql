-- Returns kinds of tasks that nothing can run for now: in a stream that no live worker serves or that is paused, or
-- at a total of 0. Gate 0 stands for the whole stream. Only kinds whose tasks may hold slots of keys.
create or replace function sluice.closed_kinds() returns table (stream int, gate int) language sql stable as $$
  select s.id, 0
  from sluice.stream s
  where s.laned
    and (/* guard:paused */ s.paused or /* end */
      s.gate in (select g.id from sluice.gate g where g.cap = 0)
      or not exists (
        select from sluice.worker w where w.streams @> array[s.id] and w.expires_at > sluice.clock()))
  union
  select gs.stream, x.gate
  from sluice.gate g
  join sluice.gate_stream gs on gs.gate = g.id
  join sluice.stream s on s.id = gs.stream and s.laned
  cross join lateral (
    select g.id as gate
    union all select m.gate from sluice.gate_member m where m.total = g.id) x
  where g.cap = 0
$$;
