-- Moves parked tasks whose kind can run again to their next lane, at their old place in its line. Returns how many.
-- Locks streams by id, then parked tasks, skipping those that are locked.
create or replace function sluice.unpark(p_max int) returns int
language plpgsql /* settings: index plans */ as $$
declare
  v_n int;
begin
  perform sluice.unstick();
  update sluice.stream set unserved = false where id = any (array(
    select s.id from sluice.stream s
    where s.unserved
      and exists (select from sluice.worker w where w.streams @> array[s.id] and w.expires_at > sluice.clock())
    order by s.id for update));
  with gone as (
    delete from sluice.parked where ctid = any (array(
      select x.tid
      from (select distinct unnest(streams) as id from sluice.worker where expires_at > sluice.clock()) s
      cross join lateral (
        select p.ctid as tid from sluice.parked p
        where p.stream = s.id
          and not exists (
            select from sluice.stuck k
            where k.stream = s.id and k.gate = any (array[0, p.gate]) and k.lane = any (array[0, p.lane]))
        order by p.gate, p.rank, p.id
        limit p_max for update skip locked) x))
    returning *
  ), back as materialized (
    select t.*, g.attempt, g.held, g.turn
    from gone g
    cross join lateral (select * from sluice.task where id = g.id limit 1) t
  ), waits as (
    insert into sluice.waiting (id, lane, place, rank, attempt, held, stream, gate, lanes, lane_limits, turn)
    select id, lanes[held + 1], sluice.lane_place(lanes[held + 1], rank), rank, attempt, held, stream, gate, lanes,
      lane_limits, turn
    from back
  ), notes as (
    insert into sluice.dirty (lane, limit_id)
    select lanes[held + 1], max(lane_limits[held + 1]) from back group by 1
  )
  select count(*) into v_n from back;
  return v_n;
end $$;
