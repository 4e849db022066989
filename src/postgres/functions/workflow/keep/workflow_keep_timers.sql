-- Ends nodes whose timers are due, of at most p_max timers, and advances their runs. Locks the run's row first, with
-- SKIP LOCKED, and then its timers, because a transaction that holds the run may delete them. Runs under the settings
-- of workflow_keep. Returns how much moved.
create or replace function sluice.workflow_keep_timers(p_now timestamptz, p_max int) returns int language plpgsql as $$
declare v record; v_runs bigint[]; v_heard bigint[]; v_nodes smallint[]; v_moved int := 0;
begin
  v_runs := array(
    select r.id from sluice.workflow_run r
    where r.id = any (array(
      select t.run from sluice.workflow_timer t where t.due_at <= p_now order by t.due_at limit p_max))
    order by r.id for no key update skip locked);
  -- An event that was sent in time wins, wherever its note is in the queue.
  -- guard: an event in time beats its timeout -> test/postgres/workflow/wait.test.ts: "an event that was sent in time wins over its timeout, however many notes are ahead of it"
  v_heard := array(select t from unnest(v_runs) t where exists (select from sluice.workflow_event e where e.run = t));
  if /* guard:in-time */ v_heard <> '{}' /* end */ then
    select * into v from sluice.workflow_deliver_events(v_heard);
    v_moved := v_moved + v.made;
    perform sluice.workflow_ring(v.streams, v.made);
  end if;
  with rung as (
    delete from sluice.workflow_timer t where t.run = any (v_runs) and t.due_at <= p_now returning t.run, t.node
  ), over as (
    update sluice.workflow_node n
    set state = case when n.kind = 'sleep' then 'succeeded' else 'failed' end::sluice.state,
      finished_at = p_now,
      outcome = case
        when n.kind = 'waitFor' then sluice.workflow_error('timeout', 'the event did not arrive in time') end
    from rung where n.run = rung.run and n.node = rung.node and n.state = 'running'
    returning n.run, n.node
  )
  select array_agg(run), array_agg(node) into v_runs, v_nodes from over;
  if v_runs is not null then
    select * into v from sluice.workflow_cascade(v_runs, v_nodes);
    v_moved := v_moved + cardinality(v_runs);
    perform sluice.workflow_ring(v.streams, v.made);
  end if;
  return v_moved;
end $$;
