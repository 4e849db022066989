-- Parks tasks of closed kinds: they give back their slots and leave the line, keeping only the slot of their order key.
-- Otherwise a type that is not deployed yet, or a paused queue, would starve other tasks of the same keys. Returns how
-- many. Locks streams by id, then tasks, skipping those that are locked.
create or replace function sluice.park_closed_kinds(p_max int) returns int
language plpgsql /* settings: index plans */ as $$
declare
  v_streams int[];
  v_gates int[];
  v_n int;
begin
  select array_agg(k.stream), array_agg(k.gate) into v_streams, v_gates from sluice.closed_kinds() k;
  -- guard: closed kinds keep no slots -> test/postgres/yield.test.ts: "tasks stopped by a paused queue or a limit of 0 release their key slots to others: %s"
  if v_streams is null then return 0; end if;
  update sluice.stream set unserved = true where id = any (array(
    select s.id from sluice.stream s
    where s.id = any (v_streams) and not s.unserved
      and not exists (select from sluice.worker w where w.streams @> array[s.id] and w.expires_at > sluice.clock())
    order by s.id for update));
  -- In order, like everything that several keepers may insert at once.
  insert into sluice.stuck (stream, gate)
  select k.stream, k.gate from unnest(v_streams, v_gates) k(stream, gate) order by 1, 2
  on conflict do nothing;
  with chosen as materialized (
    select 'ready' as source, x.tid from unnest(v_streams, v_gates) k(stream, gate) cross join lateral (
      select r.ctid as tid from sluice.ready r
      where k.gate = 0 and r.stream = k.stream
        and sluice.lane_level(r.lanes[cardinality(r.lanes)]) > sluice.order_level()
      order by r.rank, r.turn limit p_max for update skip locked) x
    union all
    select 'gated', x.tid from unnest(v_streams, v_gates) k(stream, gate) cross join lateral (
      select g.ctid as tid from sluice.gated g
      where k.gate = 0 and g.stream = k.stream
        and sluice.lane_level(g.lanes[cardinality(g.lanes)]) > sluice.order_level()
      order by g.gate, g.rank, g.turn limit p_max for update skip locked) x
    union all
    select 'gated', x.tid from unnest(v_streams, v_gates) k(stream, gate) cross join lateral (
      select g.ctid as tid from sluice.gated g
      where k.gate <> 0 and g.stream = k.stream and g.gate = k.gate
        and sluice.lane_level(g.lanes[cardinality(g.lanes)]) > sluice.order_level()
      order by g.rank, g.turn limit p_max for update skip locked) x
  ), from_ready as (
    delete from sluice.ready where ctid = any (array(select tid from chosen where source = 'ready'))
    returning id, stream, 0 as gate, rank, attempt, lanes, turn
  ), from_gated as (
    delete from sluice.gated where ctid = any (array(select tid from chosen where source = 'gated'))
    returning id, stream, gate, rank, attempt, lanes, turn
  ), gone as materialized (
    select *,
      /* guard:head */ case when sluice.lane_level(lanes[1]) = sluice.order_level() then 1 else 0 end /* end */ as held
    from (select * from from_ready union all select * from from_gated) x
  ), parked as (
    insert into sluice.parked (id, stream, gate, rank, attempt, held, turn)
    select id, stream, gate, rank, attempt, held, turn from gone
  ), notes as (
    insert into sluice.dirty (lane, limit_id, freed)
    select l, 0, count(*) from gone cross join lateral unnest(lanes[held + 1:]) l group by l
  )
  select count(*) into v_n from gone;
  return v_n;
end $$;
