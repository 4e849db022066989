-- Settle: record an outcome. Every function here deletes the running row by (id, claim) and by nothing less: a worker
-- that lost the claim deletes nothing and so records nothing.

-- Records successes. Returns what was freed; the owner of the transaction decides what becomes of it. p_results: JSON
-- texts split by U+001E, '' for none; null: none has one. Without p_keep the task leaves no trace, unless a client
-- waits for it. p_noted: one of them may be awaited, be asked to stop, or have been in hand at a crash.
create or replace function sluice.settle_succeeded(p_ids bigint[], p_claims bigint[], p_results text, p_keep boolean,
  p_noted boolean default true, out settled bigint[], out lanes bigint[], out gates int[], out gates_n int[])
language plpgsql /* settings: index plans */ as $$
declare
  v_results text[] := string_to_array(p_results, E'\x1e', '');
  v_awaited bigint[]; v_told bigint[]; v_gone sluice.gone;
  v_any_awaited boolean; v_any_flow boolean; v_any_stop boolean; v_any_crash boolean;
begin
  if p_noted then
    select exists (select from sluice.awaited), exists (select from sluice.stop), exists (select from sluice.crash),
      not p_keep and exists (select from sluice.workflow_active)
    into v_any_awaited, v_any_stop, v_any_crash, v_any_flow;
  end if;
  if v_any_awaited then
    v_awaited := array(select a.id from unnest(p_ids) u(id)
      cross join lateral (select id from sluice.awaited where id = u.id limit 1) a);
    v_told := v_awaited;
  end if;
  if /* guard:members */ v_any_flow /* end */ then
    -- Outcomes of tasks of a run are kept as long as the run: inputs of other nodes are rendered from them.
    -- guard: members are kept -> test/postgres/workflow/keep.test.ts: "with history off the results of a run are kept while it lives"
    v_awaited := v_awaited || array(select w.id from unnest(p_ids) u(id)
      cross join lateral (select id from sluice.workflow_task where id = u.id limit 1) w);
  end if;

  if cardinality(p_ids) <= 4 then
    v_gone := sluice.settle_few(p_ids, p_claims, v_results, p_keep, v_awaited);
  elsif v_results is null and coalesce(v_awaited, '{}') = '{}' then
    v_gone := sluice.settle_plain(p_ids, p_claims, p_keep);
  else
    v_gone := sluice.settle_results(p_ids, p_claims, v_results, p_keep, v_awaited);
  end if;
  settled := v_gone.settled;
  lanes := v_gone.lanes;
  -- Tasks of one type have the same totals, mostly none.
  if v_gone.gates[1] = all (v_gone.gates) and v_gone.stream_gates[1] = all (v_gone.stream_gates) then
    gates := nullif(array_remove(array[v_gone.gates[1], v_gone.stream_gates[1]], 0), '{}');
    if gates is not null then gates_n := array_fill(cardinality(settled), array[cardinality(gates)]); end if;
  elsif settled is not null then
    gates := array_remove(v_gone.gates || v_gone.stream_gates, 0);
    gates_n := array_fill(1, array[cardinality(gates)]);
  end if;
  -- Each total once, and sets as their totals.
  if cardinality(gates) > 1 or gates[1] < 0 then
    select f.gates, f.n into gates, gates_n from sluice.slots_of(gates, gates_n) f;
  end if;

  if v_told <> '{}' then perform sluice.tell_awaited(v_told); end if;
  if v_any_stop then delete from sluice.stop where id = any (settled); end if;
  if v_any_crash then delete from sluice.crash where id = any (settled); end if;
end $$;
