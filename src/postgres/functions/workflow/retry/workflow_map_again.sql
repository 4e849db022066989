-- Restarts the fan-outs of tasks that run again: items that failed or were cancelled are to run again too, and their
-- own fan-outs. What succeeded is kept. The caller holds the locks of these runs.
create or replace function sluice.workflow_map_again(p_parents bigint[]) returns void
language plpgsql /* settings: index plans */ as $$
declare v_runs bigint[]; v_good bigint[];
begin
  perform sluice.workflow_activate();
  v_runs := array(
    select r.id
    from (
      select k.id, k.state, k.finished_at from sluice.workflow_run k where k.parent = any (p_parents) offset 0
    ) r
    where r.finished_at is not null and sluice.workflow_is_unsuccessful(r.state));
  -- A fan-out that ended by itself while it was being cancelled has succeeded, and nothing of it is left to run.
  v_good := array(select n.run from sluice.workflow_node n where n.run = any (v_runs) and n.state = 'succeeded');
  update sluice.workflow_run r set state = 'succeeded', stopping = false, outcome = null where r.id = any (v_good);
  v_runs := array(select r from unnest(v_runs) r where r <> all (v_good));
  insert into sluice.workflow_again (run, node, failed, cancelled, outcome)
  select n.run, n.node, n.failed, n.cancelled, n.outcome from sluice.workflow_node n where n.run = any (v_runs);
  update sluice.workflow_run r
  set state = 'running', stopping = false, paused = false, finished_at = null, outcome = null, open = 1
  where r.id = any (v_runs);
  update sluice.workflow_node n
  set state = 'running', failing = false, failed = 0, cancelled = 0, outcome = null, finished_at = null
  where n.run = any (v_runs);
end $$;
