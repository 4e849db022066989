-- Settle: record an outcome. Every one deletes the run row by (id, claim) and by nothing less:
-- whoever lost the claim deletes nothing and so records nothing.

-- Succeeded. Returns what was freed; who owns the transaction decides what becomes of it.
-- p_results: JSON texts split by U+001E, '' for none; null: none has one. Without p_keep the task
-- leaves no trace, unless somebody waits for it. p_noted: somebody may wait for one of them, or want it to
-- stop, or it was in hand at a crash.
create or replace function sluice.settle_succeeded(p_ids bigint[], p_claims bigint[], p_results text, p_keep boolean, p_noted boolean default true,
  out settled bigint[], out lanes bigint[], out gates int[], out gates_n int[])
language plpgsql /* settings: index plans */ as $$
declare
  v_results text[] := string_to_array(p_results, E'\x1e', ''); v_awaited bigint[]; v_told bigint[];
  v_any_awaited boolean; v_any_flow boolean; v_any_stop boolean; v_any_crash boolean; v_run sluice.running; v_gates int[]; v_stream_gates int[];
begin
  if p_noted then
    select exists (select from sluice.awaited), exists (select from sluice.stop), exists (select from sluice.crash),
      not p_keep and exists (select from sluice.workflow_active)
    into v_any_awaited, v_any_stop, v_any_crash, v_any_flow;
  end if;
  if v_any_awaited then
    v_awaited := array(select a.id from unnest(p_ids) u(id) cross join lateral (select id from sluice.awaited where id = u.id limit 1) a);
    v_told := v_awaited;
  end if;
  if /* guard:members */ v_any_flow /* end */ then
    -- What belongs to a run is kept as long as the run: others are rendered from it.
    -- guard: members are kept -> test/postgres/workflow/keep.test.ts: "with history off the results of a run are kept while it lives"
    v_awaited := v_awaited || array(select w.id from unnest(p_ids) u(id) cross join lateral (select id from sluice.workflow_task where id = u.id limit 1) w);
  end if;
  if cardinality(p_ids) <= 4 then
    -- A few: plain statements cost less to begin than one that does it all.
    for i in 1..cardinality(p_ids) loop
      -- guard: fence of a few -> test/postgres/attacks.test.ts: "attack 2: the same id twice in one batch settles once, under its own claim"
      delete from sluice.running r where r.id = p_ids[i] /* guard:fence-few */ and r.claim = p_claims[i] /* end */ returning * into v_run;
      continue when not found;
      if p_keep or v_run.id = any (v_awaited) then
        insert into sluice.done (id, state, attempt, worker, started_at, finished_at, outcome)
        values (v_run.id, 's', v_run.attempt, v_run.worker, v_run.started_at, sluice.clock(), v_results[i]::json);
      else
        delete from sluice.task t where t.id = v_run.id;
      end if;
      settled := settled || v_run.id;
      lanes := lanes || v_run.lanes;
      -- Of one type all have the same gates.
      if v_run.gate <> 0 then
        if gates[1] = v_run.gate then gates_n[1] := gates_n[1] + 1; else gates := gates || v_run.gate; gates_n := gates_n || 1; end if;
      end if;
      if v_run.stream_gate <> 0 then
        if gates[1] = v_run.stream_gate then gates_n[1] := gates_n[1] + 1; else gates := gates || v_run.stream_gate; gates_n := gates_n || 1; end if;
      end if;
    end loop;
  elsif v_results is null and coalesce(v_awaited, '{}') = '{}' then
    -- Nothing to keep but that it succeeded: less to begin, and no results to find again.
    with gone as (
      delete from sluice.running where ctid = any (array(
        -- guard: fence of successes without a result -> test/postgres/attacks.test.ts: "attack 2: the same id twice in one batch settles once, under its own claim"
        select x.tid from unnest(p_ids, p_claims) v(id, claim) cross join lateral (select r.ctid as tid from sluice.running r where r.id = v.id /* guard:fence-brief */ and r.claim = v.claim /* end */ limit 1) x))
      returning *
    ), history as (
      insert into sluice.done (id, state, attempt, worker, started_at, finished_at)
      select id, 's', attempt, worker, started_at, sluice.clock() from gone where p_keep
    )
    select array_agg(id), (select array_agg(l) from gone, unnest(gone.lanes) l), array_agg(gate), array_agg(stream_gate)
    into settled, lanes, v_gates, v_stream_gates from gone;
    if not p_keep then delete from sluice.task where id = any (settled); end if;
  else
    with outcome as materialized (
      select u.id, u.claim, u.result, x.tid from unnest(p_ids, p_claims, v_results) u(id, claim, result)
      -- guard: fence -> test/postgres/attacks.test.ts: "attack 2: the same id twice in one batch settles once, under its own claim"
      cross join lateral (select r.ctid as tid from sluice.running r where r.id = u.id /* guard:fence */ and r.claim = u.claim /* end */ limit 1) x
    ), gone as (
      delete from sluice.running where ctid = any (array(select tid from outcome)) returning *
    ), history as (
      insert into sluice.done (id, state, attempt, worker, started_at, finished_at, outcome)
      select g.id, 's', g.attempt, g.worker, g.started_at, sluice.clock(), o.result::json
      from gone g left join (select distinct on (id) id, result from outcome where v_results is not null) o on o.id = g.id
      where p_keep or g.id = any (v_awaited)
    ), forgotten as (
      delete from sluice.task where id = any (array(select id from gone where not p_keep and id <> all (coalesce(v_awaited, '{}'))))
    )
    select array_agg(id), (select array_agg(l) from gone, unnest(gone.lanes) l), array_agg(gate), array_agg(stream_gate)
    into settled, lanes, v_gates, v_stream_gates from gone;
  end if;
  if v_gates is not null then
    -- Of one type all have the same gates, mostly none.
    if v_gates[1] = all (v_gates) and v_stream_gates[1] = all (v_stream_gates) then
      gates := array_remove(array[v_gates[1], v_stream_gates[1]], 0);
      gates_n := array_fill(cardinality(settled), array[cardinality(gates)]);
    else
      gates := v_gates || v_stream_gates;
      gates_n := array_fill(1, array[cardinality(gates)]);
    end if;
    if gates = '{}' then gates := null; gates_n := null; end if;
  end if;
  if cardinality(gates) > 1 or gates[1] < 0 then select f.gates, f.n into gates, gates_n from sluice.slots_of(gates, gates_n) f; end if;
  if v_told <> '{}' then perform sluice.tell_awaited(v_told); end if;
  if v_any_stop then delete from sluice.stop where id = any (settled); end if;
  if v_any_crash then delete from sluice.crash where id = any (settled); end if;
end $$;
