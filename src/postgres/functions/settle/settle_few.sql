-- A few successes: plain statements cost less to start than one that does it all.
create or replace function sluice.settle_few(p_ids bigint[], p_claims bigint[], p_results text[], p_keep boolean,
  p_kept_ids bigint[]) returns sluice.gone language plpgsql as $$
declare v_row sluice.running; v_gone sluice.gone;
begin
  for i in 1..cardinality(p_ids) loop
    -- guard: fence of a few -> test/postgres/attacks.test.ts: "attack 2: a batch with the same id twice settles it once, under its own claim"
    delete from sluice.running r where r.id = p_ids[i] /* guard:fence */ and r.claim = p_claims[i] /* end */
    returning * into v_row;
    continue when not found;
    if p_keep or v_row.id = any (p_kept_ids) then
      insert into sluice.done (id, state, attempt, worker, started_at, finished_at, outcome)
      values (v_row.id, 'succeeded', v_row.attempt, v_row.worker, v_row.started_at, sluice.clock(), p_results[i]::json);
    else
      delete from sluice.task t where t.id = v_row.id;
    end if;
    v_gone.settled := v_gone.settled || v_row.id;
    v_gone.lanes := v_gone.lanes || v_row.lanes;
    v_gone.gates := v_gone.gates || v_row.gate;
    v_gone.stream_gates := v_gone.stream_gates || v_row.stream_gate;
  end loop;
  return v_gone;
end $$;
