-- Returns the range of row addresses to search for holders of these lanes in this turn, 4 MB of each table, or an empty
-- range. The index finds a holder by its last lane only. If a lane has holders that neither run nor are found so, they
-- may be tasks of several lanes, and the tables are searched piece by piece.
create or replace function sluice.shed_range(
  p_lanes bigint[], p_used int[], p_excess int[], p_turn int, out from_tid tid, out to_tid tid)
language plpgsql as $$
declare
  v_blocks constant int := 512;
  v_pieces bigint;
  v_hidden boolean;
begin
  with running as (
    select l as lane, count(*) as n
    from sluice.running r
    cross join lateral unnest(r.lanes) l
    where l = any (p_lanes)
    group by l
  )
  select bool_or(f.n < u.excess and u.used > f.n + coalesce(r.n, 0)) into v_hidden
  from unnest(p_lanes, p_used, p_excess) u(lane, used, excess)
  left join running r on r.lane = u.lane
  cross join lateral (select count(*) as n from sluice.shed_last(u.lane, u.excess)) f;
  v_pieces := greatest(pg_relation_size('sluice.ready'), pg_relation_size('sluice.gated'))
    / current_setting('block_size')::int / v_blocks + 1;
  -- guard: holders are found by any of their lanes -> test/postgres/limits.test.ts: "a ready task with two limits per key returns to the lowered one, whichever it passed first"
  from_tid := format('(%s,0)', (p_turn % v_pieces) * v_blocks)::tid;
  to_tid := case
    when /* guard:any-lane */ v_hidden /* end */ then format('(%s,0)', (p_turn % v_pieces + 1) * v_blocks)::tid
    else from_tid
  end;
end $$;
