-- Claims up to p_take tasks of one source, of `ready`. take_gated does the same for `gated`: a statement over a table
-- that is chosen at run time would be planned every time. p_gates: as in told.
create or replace function sluice.take_ready(p_worker bigint, p_claim bigint, p_source sluice.source, p_take int,
  p_lowered boolean, p_meters boolean, p_gates text, p_look timestamptz)
returns setof sluice.claimed language plpgsql as $$
begin
  return query
  with taken as (
    delete from sluice.ready x where x.ctid = any (array(
      select y.ctid from sluice.ready y
      where y.stream = p_source.stream and (y.rank, y.turn) >= (p_source.rank, p_source.turn)
        and (not p_lowered or sluice.over_lane(y.lanes) is null)
      order by y.rank, y.turn limit p_take for update /* guard:locked */ skip locked /* end */))
    returning x.id, x.stream, x.attempt, x.lanes, x.late
  ), started as (
    insert into sluice.running (id, claim, worker, attempt, started_at, gate, stream_gate, lanes)
    select id, p_claim, p_worker, attempt + 1, sluice.clock(), p_source.gate, p_source.stream_gate, lanes from taken
  )
  select c.id, c.stream, (c.attempt + 1)::smallint, t.input,
    sluice.slots_held(c.lanes, p_source.gate, p_source.stream_gate), t.trace,
    sluice.claim_report(p_meters, p_gates, c.id = p_source.id, c.attempt, coalesce(t.due_at, t.created_at), p_look,
      c.lanes, c.late, t.lane_limits), t.nonce, null::json
  from taken c
  cross join lateral (
    select k.input, k.nonce, k.trace, k.due_at, k.created_at, k.lane_limits
    from sluice.task k where k.id = c.id limit 1) t;
end $$;
