-- Inside a user's transaction (ctx.transaction): fences and leaves notes; no barrier, no lane lock.
create or replace function sluice.settle_in_transaction(p_worker bigint, p_id bigint, p_claim bigint, p_result text, p_keep boolean) returns boolean language plpgsql as $$
declare v record;
begin
  perform sluice.require_lease(p_worker);
  select * into v from sluice.settle_succeeded(array[p_id], array[p_claim], p_result, p_keep);
  -- No barrier here, so set_stream_gate may have moved the row while we waited for it: look again.
  if v.settled is null then select * into v from sluice.settle_succeeded(array[p_id], array[p_claim], p_result, p_keep); end if;
  if v.settled is null then perform sluice.refuse('lease_lost', 'this task is no longer ours to complete'); end if;
  if v.gates is not null then perform sluice.give_back(v.gates, v.gates_n); end if;
  insert into sluice.dirty (lane, limit_id, freed) select l, 0, 1 from unnest(v.lanes) l;
  -- guard: a completion in a user's transaction leaves a note -> test/postgres/workflow/notes.test.ts: "a completion inside a transaction advances its run after the commit"
  insert into sluice.workflow_note (id, run) select id, run from sluice.workflow_task where id = p_id;
  -- What comes now is the commit. If it does not, because the connection died and the server does not know
  -- it yet, the task and its slots must not stay in this transaction's hand for hours.
  -- guard: a completion does not stay open -> test/postgres/attacks.test.ts: "a completion that is never committed does not keep its task"
  if current_setting('idle_in_transaction_session_timeout') = '0' or current_setting('idle_in_transaction_session_timeout')::interval > interval '10 s' then perform set_config('idle_in_transaction_session_timeout', '10s', true); end if;
  return true;
end $$;
