-- Settle: record an outcome. Every function here deletes the running row by (id, claim) and by nothing less: a worker
-- that lost the claim deletes nothing and so records nothing.

-- Records successes. Returns what that freed; the owner of the transaction decides what becomes of it. Runs under the
-- planner settings of its callers, step and settle_in_transaction. p_results: JSON texts split by U+001E, '' for none;
-- null: none has one. Without p_keep the task leaves no trace, unless a client waits for it or it belongs to a run.
-- p_runs_live: workflow runs may be live.
create or replace function sluice.settle_succeeded(p_ids bigint[], p_claims bigint[], p_results text, p_keep boolean,
  p_runs_live boolean default true) returns sluice.freed language plpgsql as $$
declare
  v_results text[] := string_to_array(p_results, E'\x1e', '');
  v_any_awaited boolean; v_any_stop boolean; v_any_crash boolean;
  v_kept bigint[]; v_awaited bigint[]; v_gone sluice.gone; v_freed sluice.freed;
begin
  select exists (select from sluice.awaited), exists (select from sluice.stop), exists (select from sluice.crash)
  into v_any_awaited, v_any_stop, v_any_crash;
  if v_any_awaited then
    v_kept := array(select a.id from unnest(p_ids) u(id)
      cross join lateral (select id from sluice.awaited where id = u.id limit 1) a);
    v_awaited := v_kept;
  end if;
  if not p_keep and /* guard:members */ p_runs_live /* end */ then
    -- Outcomes of tasks of a run are kept as long as the run: inputs of other nodes are rendered from them.
    -- guard: members are kept -> test/postgres/workflow/keep.test.ts: "results of a run are kept while it is live, even without history"
    v_kept := v_kept || array(select w.id from unnest(p_ids) u(id)
      cross join lateral (select id from sluice.workflow_task where id = u.id limit 1) w);
  end if;

  if cardinality(p_ids) <= 4 then
    v_gone := sluice.settle_few(p_ids, p_claims, v_results, p_keep, v_kept);
  elsif v_results is null and coalesce(v_kept, '{}') = '{}' then
    v_gone := sluice.settle_plain(p_ids, p_claims, p_keep);
  else
    v_gone := sluice.settle_results(p_ids, p_claims, v_results, p_keep, v_kept);
  end if;
  v_freed.settled := v_gone.settled;
  v_freed.refused := cardinality(p_ids) - coalesce(cardinality(v_gone.settled), 0);
  v_freed.lanes := v_gone.lanes;
  -- Tasks without a limit, which are the most, have nothing to count.
  if 0 <> any (v_gone.gates) or 0 <> any (v_gone.stream_gates) then
    v_freed := sluice.freed_totals(v_freed, v_gone);
  end if;

  if v_awaited <> '{}' then perform sluice.tell_awaited(v_awaited); end if;
  if v_any_stop then delete from sluice.stop where id = any (v_gone.settled); end if;
  if v_any_crash then delete from sluice.crash where id = any (v_gone.settled); end if;
  return v_freed;
end $$;
