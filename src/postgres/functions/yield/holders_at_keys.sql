-- Returns tasks that hold a slot of a key and need another key that is full, at most p_max: half of them the last ones,
-- the others from a random place on, so that each has its chance.
create or replace function sluice.holders_at_keys(p_max int) returns setof sluice.holder
language plpgsql stable set enable_seqscan = off set enable_bitmapscan = off set jit = off as $$
declare
  v_low bigint;
  v_high bigint;
  v_share float8 := random();
begin
  select w.id into v_high from sluice.waiting w
  where w.held > 0 and w.lanes[w.held] >= sluice.first_key()
  order by w.id desc
  limit 1;
  if not found then return; end if;
  select w.id into v_low from sluice.waiting w
  where w.held > 0 and w.lanes[w.held] >= sluice.first_key()
  order by w.id
  limit 1;
  return query
  select distinct 'waiting', x.tid, x.id, x.stream, x.gate, x.rank, x.attempt, x.lanes[1:x.held], f.lane, x.turn
  from (values (v_high), (v_low + (v_share * (v_high - v_low))::bigint)) most(id)
  cross join lateral (
    select w.ctid as tid, w.id, w.stream, w.gate, w.rank, w.attempt, w.lanes, w.held, w.turn
    from sluice.waiting w
    where w.held > 0 and w.lanes[w.held] >= sluice.first_key() and w.id <= most.id
    order by w.id desc
    limit p_max / 2) x
  -- guard: what is on its way keeps its slots -> test/postgres/yield.test.ts: "a task on its way to a second key with room keeps its place"
  cross join lateral (
    select m.lane from unnest(x.lanes[x.held + 1:]) with ordinality m(lane, n)
    /* guard:on-its-way */ where not sluice.has_room(m.lane) /* end */
    order by m.n
    limit 1) f;
end $$;
