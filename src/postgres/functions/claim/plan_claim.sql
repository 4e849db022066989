-- Decides how many tasks a claim takes of each of several sources, or of one that plan_sole_source leaves to it, and
-- locks the counters that must change (lock_gates). p_everywhere: examine rivals too; where searches take long, only as
-- often as everything.
create or replace function sluice.plan_claim(p_n int, p_streams int[], p_sources sluice.source[], p_freed sluice.freed,
  p_token bigint, p_everywhere boolean, p_meters boolean) returns sluice.claim_plan language plpgsql as $$
declare
  v_plan sluice.claim_plan; v_locked record;
  v_others sluice.source[]; v_all sluice.source[]; v_others_n int; v_wants int[]; v_gate_wants int[];
  v_m int := cardinality(p_sources);
  v_heads bigint[] := array(select s.id from unnest(p_sources) s);
begin
  v_plan.gates := sluice.counters_of(p_sources, p_freed.gates);
  if v_plan.gates <> '{}' and p_everywhere then
    v_others := sluice.rival_sources(v_plan.gates, p_streams, p_freed.gates, p_freed.gates_n, p_token);
  end if;
  v_all := p_sources || v_others;
  v_others_n := coalesce(cardinality(v_others), 0);
  if cardinality(v_all) = 1 then
    v_wants := array[least(p_n, v_all[1].room, v_all[1].stream_room)];
  else
    v_wants := sluice.pick(p_n, v_all, v_others_n, v_plan.gates, array(
      select sluice.gate_room(k.id, p_freed.gates, p_freed.gates_n,
        case when k.kept_for = any (v_heads) then k.kept_for end)
      from unnest(v_plan.gates) x(gate)
      cross join lateral (select g.id, g.kept_for from sluice.gate g where g.id = x.gate limit 1) k order by k.id));
  end if;
  v_gate_wants := sluice.wants_of(v_plan.gates, p_sources, v_wants[:v_m]);
  v_plan.own := array(
    select coalesce(f.n, 0) from unnest(v_plan.gates) with ordinality x(gate, i)
    left join unnest(p_freed.gates, p_freed.gates_n) f(gate, n) on f.gate = x.gate order by x.i);
  select * into v_locked from sluice.lock_gates(v_plan.gates, v_gate_wants, v_plan.own, v_heads,
    p_freed.gates is null and not sluice.takes_freely(p_sources, v_wants[:v_m]), p_meters);
  -- Others were quicker and left fewer slots than expected: decide again by what there is.
  if exists (select from unnest(v_locked.slots, v_gate_wants) x(slots, want) where x.slots < x.want) then
    v_wants := sluice.pick(p_n, v_all, v_others_n, v_plan.gates, v_locked.slots);
  end if;
  v_plan.wants := v_wants[:v_m];
  v_plan.locked := v_locked.locked;
  v_plan.absorbed := v_locked.absorbed;
  v_plan.full_until := v_locked.full_until;
  if v_others_n > 0 then
    v_plan.ring := array(select x.stream from unnest(v_others, v_wants[v_m + 1:])
      x(stream, gate, stream_gate, rank, turn, id, room, stream_room, k) where x.k > 0);
  end if;
  return v_plan;
end $$;
