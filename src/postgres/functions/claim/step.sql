-- Step: settle these, admit once, claim n more. One round trip, one transaction.
--
-- A claim takes the heads of the sources that its worker serves, merged by (rank, turn). A source is ready(stream), or
-- gated(stream, gate) for each gate with room; the stream's own limit applies to both. A claim examines 16 sources
-- at most; the caller rotates p_from so that every stream gets its turn.
--
-- p_claim: the token of what this call claims, random and chosen by the caller, who therefore knows it even when the
-- reply is lost. p_n: how many tasks to claim. p_from: the stream to begin with. p_tells: note that the worker sleeps,
-- if it got fewer than it asked for, or that it is awake. p_spots: where to search, for a worker whose searches take
-- long; empty: everywhere, and report a search that took long; null: everywhere, without a report. p_meters: report of
-- every task with limits what it passed.
--
-- A running row that a user's open transaction has locked must not hold up the barrier: the step fails after 2 s, and
-- its outcomes are sent again.
--
-- A row is a claimed task, or a report about the call (see the type `claimed`).
create or replace function sluice.step(p_worker bigint, p_claim bigint, p_streams int[], p_n int,
  p_ids bigint[] default null, p_claims bigint[] default null, p_results text default null, p_keep boolean default true,
  p_from int default 1, p_tells boolean default false, p_spots sluice.spot[] default null,
  p_meters boolean default false)
returns setof sluice.claimed language plpgsql set lock_timeout = '2s' /* settings: index plans */ as $$
declare
  v_alive boolean; v_dirty boolean; v_lowered boolean; v_runs_live boolean;
  v_freed sluice.freed; v_end record; v_ring int[]; v_claimed int := 0;
  v_look timestamptz; v_sources sluice.source[]; v_one sluice.sole_plan; v_plan sluice.claim_plan; v_passed text;
begin
  perform sluice.barrier_shared();
  -- What every step needs to know, in one statement, which costs more to start than to run. What only some need comes
  -- later: a B-tree scan takes 27 kB, and past about 100 kB malloc returns memory to the system after each statement.
  select exists (select from sluice.worker w where w.id = p_worker and w.expires_at > sluice.clock()),
    p_n > 0 and exists (select from sluice.dirty),
    p_n > 0 and /* guard:lowered */ exists (select from sluice.lowered) /* end */,
    exists (select from sluice.workflow_active)
  into v_alive, v_dirty, v_lowered, v_runs_live;
  if not v_alive then perform sluice.require_lease(p_worker); end if;
  if p_ids is not null then
    v_freed := sluice.settle_succeeded(p_ids, p_claims, p_results, p_keep, v_runs_live);
    if v_freed.refused > 0 then return next sluice.step_report(json_build_object('refused', v_freed.refused)); end if;
  end if;
  if v_runs_live then
    -- Before the lanes and before the claim: this step may claim the next tasks of the runs whose tasks it settled.
    select * into v_end from sluice.workflow_advance_settled(v_freed.settled, p_streams, p_n);
    v_dirty := v_dirty or p_n > 0 and coalesce(v_end.joined, false);
    if v_end.unplaced then return next sluice.step_report('{"unplaced": true}'); end if;
  end if; /* guard:one-pass */ /* end */
  -- guard: one pass -> test/postgres/attacks.test.ts: "attack 4: a step admits in one ascending pass"
  if v_freed.lanes is not null or v_dirty then v_ring := sluice.step_admit(v_freed.lanes, v_dirty); end if;
  if p_n > 0 then
    v_look := sluice.clock();
    v_sources := case when p_spots <> '{}'
      then sluice.sources_from(p_spots, p_streams, v_freed.gates, v_freed.gates_n)
      else sluice.sources(case when p_from > 1 then p_streams[p_from:] || p_streams[:p_from - 1] else p_streams end,
        v_freed.gates, v_freed.gates_n, p_claim) end;
    if p_spots <> '{}' or p_spots is not null and sluice.clock() - v_look >= interval '3 ms' then
      return next sluice.search_report(v_sources, v_look);
    end if;
  end if;
  if v_sources is null then
    if v_freed.gates is not null then v_ring := v_ring || sluice.leave_slots(v_freed, p_streams, p_n); end if;
  elsif cardinality(v_sources) = 1 then
    v_one := sluice.plan_sole_source(p_n, v_sources[1], p_streams, v_freed, v_look);
  end if;
  if v_one.take is not null then
    if p_meters and (v_one.locked or v_freed.gates is not null) then
      v_passed := sluice.passed_totals(v_one, v_freed, v_look);
    end if;
    if v_sources[1].gate = 0 then
      return query select * from sluice.take_ready(
        p_worker, p_claim, v_sources[1], v_one.take, v_lowered, p_meters, v_passed, v_look);
    else
      return query select * from sluice.take_gated(
        p_worker, p_claim, v_sources[1], v_one.take, v_lowered, p_meters, v_passed, v_look);
    end if;
    get diagnostics v_claimed = row_count;
    if v_one.locked or v_claimed < v_freed.gates_n[1] then perform sluice.count_one(v_one, v_freed, v_claimed); end if;
  elsif v_sources is not null then
    v_plan := sluice.plan_claim(p_n, p_streams, v_sources, v_freed, p_claim, coalesce(p_spots, '{}') = '{}', p_meters);
    v_ring := v_ring || v_plan.ring;
    return query select * from sluice.take_planned(
      p_worker, p_claim, v_sources, v_plan, v_lowered, p_meters, v_freed.many, v_look);
    get diagnostics v_claimed = row_count;
  end if;
  if v_ring is not null or p_tells or v_claimed = p_n and p_n > 50 then
    perform sluice.step_ring(p_worker, p_streams, p_n, v_claimed, v_ring, p_tells);
  end if;
end $$;
