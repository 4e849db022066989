-- Runs a failed or cancelled task again from its first attempt, in its old place, together with its fan-outs. Returns
-- whether it does. While its fan-outs are being cancelled the retry is refused, because the task would find nothing
-- else. p_token: see sluice.retried. Locks the run that the task belongs to and the runs it made, then as in a step.
create or replace function sluice.retry(p_id bigint, p_token bigint default null) returns boolean
language plpgsql set lock_timeout = '2s' /* settings: index plans */ as $$
declare
  v_counted boolean;
  v_made bigint[] := array(select r.id from sluice.workflow_run r where r.parent = p_id);
  v_runs bigint[];
  v_run bigint;
  v_left int := 1000;
begin
  -- The run that it belongs to, and the runs it made. A transaction that cancels what is left of an ended task reads
  -- the task under this lock, so one of the two sees the other.
  -- guard: a retry locks what its task made -> test/postgres/workflow/races.test.ts: "a map continues if its task is retried before the map is cancelled"
  v_runs := /* guard:made */ v_made || /* end */ array(select w.run from sluice.workflow_task w where w.id = p_id);
  if v_runs <> '{}' then perform sluice.workflow_lock_shared(v_runs); end if;
  if exists (select from sluice.retried r where r.token = p_token) then return true; end if;
  if exists (select from sluice.workflow_task where id = p_id) then
    v_counted := sluice.workflow_uncount(p_id);
    -- A retry of its run is bringing it back.
    if v_counted is null then return true; end if;
    if not v_counted then return false; end if;
  end if;
  if exists (
      select from sluice.workflow_run r where r.id = any (v_made) and r.stopping and r.finished_at is null) then
    perform sluice.refuse('workflow_stopping', 'the fan-out of this task is being cancelled: retry after it has ended');
  end if;
  if sluice.retry_many(array[p_id]) = 0 then
    -- The first call may have been under way until now.
    -- guard: a retry is asked for twice -> test/postgres/workflow/again.test.ts: "a repeated retry of a task with the same token returns the same answer while the first is in flight"
    return /* guard:once */ exists (select from sluice.retried r where r.token = p_token) /* end */;
  end if;
  perform sluice.note_retried(p_token, 1);
  -- The first of the runs it made, in the order of their windows' lanes. A keeper does the rest, and nested ones.
  if v_made <> '{}' then
    for v_run in
      select a.run
      from sluice.workflow_again a
      join sluice.workflow_run r on r.id = a.run
      join sluice.workflow_node n on n.run = a.run and n.node = a.node
      where a.run = any (v_made) and not r.paused
      order by n.lane
    loop
      v_left := v_left - sluice.workflow_again_run(v_run, v_left);
      exit when v_left <= 0;
    end loop;
  end if;
  return true;
end $$;
