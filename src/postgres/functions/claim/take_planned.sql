-- Claims from several sources what plan_claim decided, and counts it, in one statement. The caller holds the locks of
-- the counters that the plan says are locked; what comes back to another is appended to `credit`.
create or replace function sluice.take_planned(p_worker bigint, p_claim bigint, p_sources sluice.source[],
  p_plan sluice.claim_plan, p_lowered boolean, p_meters boolean, p_many boolean, p_look timestamptz)
returns setof sluice.claimed language plpgsql as $$
declare v_head bigint := p_sources[1].id; v_full bigint[];
begin
  if p_meters and p_plan.gates <> '{}' then
    p_look := sluice.clock();
    v_full := array(select sluice.full_ms(x.at, p_look)
      from unnest(p_plan.full_until) with ordinality x(at, i) order by x.i);
  end if;
  return query
  with source as (
    select u.*, case when v_full is not null then (
        select string_agg(',' || y.gate || ',' || y.full_ms, '') from unnest(p_plan.gates, v_full) y(gate, full_ms)
        where y.gate = any (sluice.gates_of(u.gate) || u.stream_gate)) end as passed
    from unnest(p_sources, p_plan.wants) u(stream, gate, stream_gate, rank, turn, id, room, stream_room, k) where k > 0
  ), from_ready as (
    delete from sluice.ready x where x.ctid = any (array(
      select y.tid from source w cross join lateral (
        select z.ctid as tid from sluice.ready z where z.stream = w.stream and (z.rank, z.turn) >= (w.rank, w.turn)
          and (not p_lowered or sluice.over_lane(z.lanes) is null)
        order by z.rank, z.turn limit w.k for update /* guard:locked */ skip locked /* end */) y where w.gate = 0))
    returning x.id, x.stream, x.attempt, 0 as gate, x.lanes, x.late
  ), from_gated as (
    delete from sluice.gated x where x.ctid = any (array(
      select y.tid from source w cross join lateral (
        select z.ctid as tid from sluice.gated z
        where z.stream = w.stream and z.gate = w.gate and (z.rank, z.turn) >= (w.rank, w.turn)
          and (not p_lowered or sluice.over_lane(z.lanes) is null)
        order by z.rank, z.turn limit w.k for update /* guard:locked */ skip locked /* end */) y where w.gate <> 0))
    returning x.id, x.stream, x.attempt, x.gate, x.lanes, x.late
  ), taken as materialized (
    select c.*, w.stream_gate, w.passed from (select * from from_ready union all select * from from_gated) c
    join source w on w.stream = c.stream and w.gate = c.gate
  ), started as (
    insert into sluice.running (id, claim, worker, attempt, started_at, gate, stream_gate, lanes)
    select id, p_claim, p_worker, attempt + 1, sluice.clock(), gate, stream_gate, lanes from taken
  ), used as (
    select x.gate, sum(t.n)::int as n
    from (select gate, stream_gate, count(*) as n from taken group by gate, stream_gate) t
    cross join lateral unnest(sluice.gates_of(t.gate) || t.stream_gate) x(gate) group by x.gate
  ), change as materialized (
    select y.gate, y.locked, y.absorbed, coalesce(u.n, 0) - y.own - y.absorbed as n, y.full_until
    from unnest(p_plan.gates, p_plan.locked, p_plan.own, p_plan.absorbed, p_plan.full_until)
      y(gate, locked, own, absorbed, full_until) left join used u on u.gate = y.gate
  ), counted as (
    update sluice.gate t set used = t.used + c.n, full_at = least(c.full_until, sluice.clock()),
      kept_for = case when t.kept_for = any (array(select id from taken)) then null else t.kept_for end
    from (
      select k.tid, change.n, change.full_until from change
      cross join lateral (select ctid as tid, kept_for from sluice.gate where id = change.gate limit 1) k
      where change.locked and (change.n <> 0 or k.kept_for = any (array(select id from taken)))) c
    where t.ctid = c.tid
  ), credited as (
    insert into sluice.credit (gate, n) select gate, -n from change where not locked and n < 0
  ), returned as (
    -- guard: slots a step gives back are noted -> test/postgres/kinds.test.ts: "slots that a step returns beside its claim start the next tasks of full groups"
    insert into sluice.returned (stream, total) select gs.stream, gs.gate from change c
    join sluice.gate_stream gs on gs.gate = c.gate join sluice.stream st on st.id = gs.stream and st.many
    where /* guard:returned */ p_many /* end */ and c.n + c.absorbed < 0
  )
  select c.id, c.stream, (c.attempt + 1)::smallint, t.input, sluice.slots_held(c.lanes, c.gate, c.stream_gate), t.trace,
    sluice.claim_report(p_meters, c.passed, c.id = v_head, c.attempt, coalesce(t.due_at, t.created_at), p_look,
      c.lanes, c.late, t.lane_limits), t.nonce, null::json
  from taken c
  cross join lateral (
    select k.input, k.nonce, k.trace, k.due_at, k.created_at, k.lane_limits
    from sluice.task k where k.id = c.id limit 1) t;
end $$;
