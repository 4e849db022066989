-- Marks those of these fan-outs as being cancelled whose task was cancelled, or will be with its run; the outermost
-- first. A task that was retried meanwhile keeps its fan-out. Nothing passes their windows from here on. The caller
-- holds the locks of the fan-outs.
create or replace function sluice.workflow_stop_maps(p_maps bigint[]) returns void
language plpgsql /* settings: index plans */ as $$
declare v_reason text := 'the task that started it has ended'; v_runs bigint[]; v_run bigint; t record;
begin
  loop
    -- guard: a map goes only with its task -> test/postgres/workflow/races.test.ts: "a task that is retried before its map is cancelled keeps the map"
    with doomed as (
      update sluice.workflow_run r
      set stopping = true, outcome = json_build_object('reason', v_reason)
      where r.id = any (p_maps) and r.finished_at is null and not r.stopping
        /* guard:own-task */ and (coalesce(
          (select d.state from sluice.done d where d.id = r.parent limit 1) in ('failed', 'cancelled'),
          (select o.stopping from sluice.workflow_run o where o.id = r.outer_run limit 1)
            and (select true from sluice.running x where x.id = r.parent limit 1) is null)) /* end */
      returning r.id
    )
    select array_agg(id) into v_runs from doomed;
    exit when v_runs is null;
    update sluice.workflow_node set failing = true where run = any (v_runs) and state = 'running';
    -- guard: a map is stopped with what is not back -> test/postgres/workflow/inner.test.ts: "cancel also cancels maps that a retry has not brought back yet"
    for v_run in
      select distinct a.run from sluice.workflow_again a where /* guard:stay */ a.run = any (v_runs) /* end */
    loop
      perform sluice.workflow_abandon_retry(v_run);
      select * into t
      from sluice.workflow_count_tasks(array[v_run], array[1::smallint], array[0], array[0], array[0], null);
      if t.over_runs is not null then
        perform sluice.workflow_cascade(t.over_runs, t.over_nodes);
      end if;
    end loop;
    insert into sluice.workflow_halt (run, node, reason)
    select n.run, n.node, v_reason from sluice.workflow_node n where n.run = any (v_runs) and n.state = 'running'
    on conflict do nothing;
  end loop;
end $$;
