-- Explains why a task does not run: the obstacles on its way to a worker, in the order in which it meets them. The
-- first one holds it now. p_deep: also explain why the holders of what it waits for do not run. Null if there is no
-- such task.
--
-- It only reads, without locks. All functions here are stable, so they share the snapshot of the statement that calls
-- explain: a task is found in one place, and its obstacles are those of that moment. No index tells who holds a slot of
-- a lane, because every claim would pay for it: holders are searched for where most of them are first, and no further
-- than needed. Tasks in a line are counted up to 10,000. JSON numbers are few and small; ids are text.
create or replace function sluice.explain(p_id bigint, p_deep boolean default true) returns json
language plpgsql stable set enable_seqscan = off set enable_bitmapscan = off set jit = off as $$
declare
  t sluice.task;
  s sluice.stream;
  k record;
  v_run json;
  v_blocks json;
  v_reasons json[] := '{}';
begin
  select * into t from sluice.task where id = p_id;
  if not found then return null; end if;
  select * into s from sluice.stream where id = t.stream;
  select y.state, y.attempt, y.started_at, y.finished_at, y.worker, y.outcome
  into k
  from sluice.task_state y where y.id = p_id;
  if k.state = 'running' then
    v_run := sluice.explain_execution(p_id, k.worker, k.started_at);
  elsif k.state = 'failed' then
    v_blocks := sluice.explain_blocks(t);
  elsif k.state in ('scheduled', 'waiting', 'ready') then
    v_reasons := sluice.explain_reasons(t, s, p_deep);
  end if;
  return json_build_object(
    'task', p_id::text, 'type', s.type, 'queue', s.queue, 'state', k.state, 'at', sluice.clock(),
    'createdAt', t.created_at, 'finishedAt', k.finished_at, 'attempt', k.attempt, 'attemptsMax', t.attempts_max,
    'error', case
      when k.state = 'failed' then k.outcome ->> 'message'
      when k.state not in ('succeeded', 'cancelled') then sluice.last_error(p_id) ->> 'message' end,
    'blocks', v_blocks, 'execution', v_run, 'reasons', array_to_json(v_reasons),
    'workflow', sluice.explain_member(p_id));
end $$;
