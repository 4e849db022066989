-- Decides how a step that found one source takes from it. The result, or its `take`, is null if plan_claim must decide.
--
-- Two cases change no counter: the source needs no total, or the slots that this step has freed are exactly those that
-- it uses again, so that counters are only read. The third case is one total whose counter must change while nobody
-- else has a claim to its slots: it locks that counter and takes a third of the statements that several totals need.
create or replace function sluice.plan_sole_source(
  p_n int, p_source sluice.source, p_streams int[], p_freed sluice.freed, p_look timestamptz
) returns sluice.sole_plan language plpgsql as $$
declare
  v_plan sluice.sole_plan; v_room int;
  v_own int := p_freed.gates_n[1];
  v_most int := least(p_n, p_source.room, p_source.stream_room);
  -- With one total one of the two is 0, so the sum is the other.
  v_total int := p_source.gate + p_source.stream_gate;
  v_single boolean := p_source.gate >= 0 and least(p_source.gate, p_source.stream_gate) = 0;
begin
  if p_freed.gates is null then
    if p_source.gate = 0 and p_source.stream_gate = 0 then
      v_plan.take := p_n;
      return v_plan;
    end if;
  elsif v_most = v_own and not p_freed.kept and sluice.frees_all(p_source, p_freed)
      and (sluice.rivals(p_freed.gates, p_streams)).streams is null then
    v_plan.take := v_own;
    return v_plan;
  end if;
  -- Where slots freed and wanted are equal, a rival may need them: plan_claim compares.
  if not v_single or p_freed.gates is not null and (p_freed.gates <> array[v_total] or v_most = v_own) then
    return null;
  end if;
  if sluice.full_until(v_total) >= p_look - interval '1 second'
      and (sluice.rivals(array[v_total], p_streams)).streams is not null then return null; end if;
  select t.room, t.absorbed, t.full_until into v_room, v_plan.absorbed, v_plan.full_until
  from sluice.lock_total(v_total) t;
  if v_room is null then return null; end if;
  v_plan.locked := true;
  v_plan.total := v_total;
  -- guard: one total gives what it has -> test/postgres/limits.test.ts: "a limit moved 10 -> 2 -> 10 -> 0 -> 5 under a load of settles is never exceeded"
  v_plan.take := /* guard:total */
    greatest(0, least(p_n, /* guard:lowered-total */ v_room /* end */ + coalesce(v_own, 0))) /* end */;
  return v_plan;
end $$;
