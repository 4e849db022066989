-- Cancels a run. No node begins and nothing passes a window from the moment this returns. Tasks that have passed their
-- window, or have none, may begin until workflow_continue has come to them, if they are more than one batch. The same
-- holds for fan-outs of its tasks that do not run; those that another transaction held are shut by
-- workflow_cancel_maps.
--
-- Locks the run (workflow_lock_shared). Returns 'cancelled': it is over; 'asked': running tasks have been asked to
-- stop, and waiting ones are being cancelled; 'over': it was over before; 'unknown': there is no such run.
create or replace function sluice.workflow_cancel(p_run bigint, p_reason text default null) returns text
language plpgsql set lock_timeout = '2s' /* settings: index plans */ as $$
declare r sluice.workflow_run; v_nodes smallint[]; v_stayed smallint[]; v_none int[]; t record;
begin
  perform sluice.workflow_lock_shared(array[p_run]);
  select * into r from sluice.workflow_run where id = p_run;
  if not found or r.pruning then
    return 'unknown';
  end if;
  if r.finished_at is not null then
    return 'over';
  end if;
  if r.stopping then
    return 'asked';
  end if;
  update sluice.workflow_run set stopping = true, outcome = json_build_object('reason', p_reason) where id = p_run;
  -- In the same lock: nodes without tasks are over here and now.
  with gone as (
    update sluice.workflow_node
    set state = 'cancelled', finished_at = sluice.clock()
    where run = p_run
      and (state in ('pending', 'held', 'placing') or state = 'running' and kind in ('sleep', 'waitFor'))
    returning node
  )
  select array_agg(node) into v_nodes from gone;
  delete from sluice.workflow_timer where run = p_run;
  -- A row that another transaction holds is being placed: that transaction finds that the node is not wanted any more.
  delete from sluice.workflow_unplaced
  where ctid = any (array(select ctid from sluice.workflow_unplaced where run = p_run for update skip locked));
  update sluice.workflow_node set failing = true where run = p_run and state = 'running' and kind = 'each';
  -- guard: cancelled with what is not back -> test/postgres/workflow/again.test.ts: "a cancel during a retry ends the run with the outcomes of items that are not back"
  v_stayed := /* guard:stay */ sluice.workflow_abandon_retry(p_run) /* end */;
  if v_stayed is not null then
    v_none := array_fill(0, array[cardinality(v_stayed)]);
    select * into t
    from sluice.workflow_count_tasks(
      array_fill(p_run, array[cardinality(v_stayed)]), v_stayed, v_none, v_none, v_none, null);
    v_nodes := v_nodes || t.over_nodes;
  end if;
  -- Tasks in flight first.
  insert into sluice.workflow_halt as h (run, node, pending, reason)
  select p_run, n.node, coalesce(f.ids, '{}'), p_reason
  from sluice.workflow_node n
  left join lateral sluice.workflow_in_flight(p_run, n.node, 0) f on n.kind = 'each'
  where n.run = p_run and n.state = 'running'
  on conflict (run, node) do nothing;
  if v_nodes is not null then
    perform sluice.workflow_cascade(array_fill(p_run, array[cardinality(v_nodes)]), v_nodes);
  end if;
  perform sluice.workflow_halt_run(p_run, 1000);
  if exists (select from sluice.workflow_halt where run = p_run) then
    perform sluice.poll_by(sluice.clock() + interval '100 milliseconds');
  end if;
  return case
    when (select finished_at from sluice.workflow_run where id = p_run) is null then 'asked'
    else 'cancelled' end;
end $$;
