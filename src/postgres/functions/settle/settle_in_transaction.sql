-- Records a success inside a user's transaction (ctx.transaction): fences and leaves notes; no barrier, no lane lock.
create or replace function sluice.settle_in_transaction(p_worker bigint, p_id bigint, p_claim bigint, p_result text,
  p_keep boolean) returns boolean language plpgsql /* settings: index plans */ as $$
declare v sluice.freed; v_idle_max text := current_setting('idle_in_transaction_session_timeout');
begin
  /* guard:lease */ perform sluice.require_lease(p_worker); /* end */
  v := sluice.settle_succeeded(array[p_id], array[p_claim], p_result, p_keep);
  -- No barrier here, so set_stream_gate may have moved the row while we waited for it: look again.
  if /* guard:moved */ v.settled is null /* end */ then
    v := sluice.settle_succeeded(array[p_id], array[p_claim], p_result, p_keep);
  end if;
  if /* guard:settled */ v.settled is null /* end */ then
    perform sluice.refuse('lease_lost', 'the claim of this task was lost: another worker may run it');
  end if;
  if v.gates is not null then perform sluice.give_back(v.gates, v.gates_n); end if;
  /* guard:notes */ insert into sluice.dirty (lane, limit_id, freed) select l, 0, 1 from unnest(v.lanes) l /* end */;
  -- guard: a completion in a user's transaction leaves a note -> test/postgres/workflow/notes.test.ts: "a completion in a user's transaction advances its run after the commit"
  insert into sluice.workflow_note (id, run)
  select id, run from sluice.workflow_task where id = /* guard:awaited */ p_id /* end */;
  -- The commit comes next. If it does not, because the connection died and the server does not know it yet, the task
  -- and its slots must not stay locked by this transaction for hours.
  -- guard: a completion does not stay open -> test/postgres/attacks.test.ts: "a completion that is never committed does not hold its task forever"
  if v_idle_max = '0' or v_idle_max::interval > interval '10 s' then
    perform set_config('idle_in_transaction_session_timeout', /* guard:open */ '10s' /* end */, true);
  end if;
  return true;
end $$;
