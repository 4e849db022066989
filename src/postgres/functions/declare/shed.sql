-- Moves tasks that hold a slot of a lane above its number and are ready or gated back to wait at that lane, the last
-- ones first. Otherwise they would keep the lane above its number without using it. Tasks that another transaction has
-- locked are skipped and tried again: the keeper calls this while a limit is `lowered`, and claims skip such tasks
-- until then. Slots that come free become notes, no more than the keeper's next look takes. At most p_max lanes of each
-- limit at a time, by one worker: the advisory lock is tried and never waited for. Takes the barrier, shared. shed: how
-- many tasks moved. cleared: how many lanes are no longer above their number.
create or replace function sluice.shed(p_max int default 500, out shed int, out cleared int)
language plpgsql set jit = off as $$
declare
  v_lanes bigint[];
  v_used int[];
  v_excess int[];
  v_turn int;
  v_from tid;
  v_to tid;
begin
  shed := 0;
  cleared := 0;
  perform sluice.barrier_shared();
  if not pg_try_advisory_xact_lock('sluice.lowered'::regclass::oid::int, 0) then return; end if;
  v_turn := (select min(turn) from sluice.lowered);
  with piece as materialized (
    select d.limit_id, e.lane
    from sluice.lowered d
    cross join lateral (
      select lane from sluice.excess where limit_id = d.limit_id and lane > d.after order by lane limit p_max) e
    union all
    select sluice.window_limit(), n.id
    from sluice.lane n
    where n.limit_id = sluice.window_limit() and n.used > n.cap
      and exists (select from sluice.lowered where limit_id = sluice.window_limit())
  ), over as materialized (
    select p.*, n.used, n.used - coalesce(n.cap, l.per_key_override, l.per_key_declared, sluice.no_limit()) as excess
    from piece p
    left join sluice.lane n on n.id = p.lane
    left join sluice.limits l on l.id = n.limit_id
  ), below as (
    delete from sluice.excess e using over o
    where e.limit_id = o.limit_id and e.lane = o.lane and coalesce(o.excess, 0) <= 0
    returning 1
  ), moved as (
    update sluice.lowered d set
      turn = turn + 1,
      after = coalesce((select max(p.lane) from piece p where p.limit_id = d.limit_id having count(*) = p_max), 0)
  )
  select array_agg(lane) filter (where excess > 0), array_agg(used) filter (where excess > 0),
    array_agg(excess) filter (where excess > 0), (select count(*) from below)
  into v_lanes, v_used, v_excess, cleared
  from over;
  if v_lanes is not null then
    select r.from_tid, r.to_tid into v_from, v_to from sluice.shed_range(v_lanes, v_used, v_excess, v_turn) r;
    shed := sluice.shed_holders(v_lanes, v_excess, p_max - p_max / 4, v_from, v_to);
  end if;
  delete from sluice.lowered d
  where case
    when d.limit_id = sluice.window_limit()
    then not exists (select from sluice.lane n where n.limit_id = sluice.window_limit() and n.used > n.cap)
    else not exists (select from sluice.excess e where e.limit_id = d.limit_id)
      and not exists (select from sluice.changed c where c.limit_id = d.limit_id)
  end;
end $$;
