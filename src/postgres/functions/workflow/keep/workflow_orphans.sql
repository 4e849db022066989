-- Fan-outs of handlers whose task failed, was cancelled or is gone: nobody will ask for what they come to. Cancels one
-- of them, of at most p_max that were noted, so that no other run is locked meanwhile; cancelled: 0 if there was none.
-- p_after, p_after_parent: up to which fan-out, and which parent, a walk over them has come, 0 to begin; after,
-- after_parent: where to go on. So each is looked at once in a round, however their ids lie.
create or replace function sluice.workflow_orphans(p_max int, p_after bigint default 0, p_after_parent bigint default 0, out cancelled int, out after bigint, out after_parent bigint)
language plpgsql /* settings: index plans */ as $$
declare v record; v_run sluice.workflow_run; v_look bigint[];
begin
  cancelled := 0; after := p_after;
  perform sluice.barrier_shared();
  -- A handler that went on although its task had been taken from it may have made one after the task's end: nobody has
  -- noted that. Some at a time, so that no look takes long.
  if not exists (select from sluice.workflow_orphan) then
    v_look := array(select x.id from sluice.workflow_run x where x.parent is not null and x.finished_at is null and not x.stopping and x.id > p_after order by x.id limit 200);
    after := coalesce(v_look[200], 0);
    insert into sluice.workflow_orphan (run) select r.id from (select x.id, x.parent from sluice.workflow_run x where x.id = any (v_look)) r
      left join lateral (select k.id from sluice.task k where k.id = r.parent limit 1) t on true left join lateral (select k.state from sluice.done k where k.id = t.id limit 1) d on true
      where t.id is null or d.state in ('f', 'c');
  end if;
  for v in select o.ctid as tid, o.run from sluice.workflow_orphan o order by o.run limit p_max for update skip locked loop
    -- guard: what is left of a task is locked before the task is looked at -> test/postgres/workflow/races.test.ts: "what a task had fanned out goes on if the task is retried before anybody cancels it"
    select * into v_run from sluice.workflow_run where id = v.run /* guard:lock */ for no key update skip locked /* end */;
    -- In another's hand: next time.
    continue when not found and exists (select from sluice.workflow_run where id = v.run);
    delete from sluice.workflow_orphan where ctid = v.tid;
    continue when v_run.id is null or v_run.finished_at is not null or v_run.stopping;
    -- It may have been retried since.
    continue when not exists (select from sluice.done d where d.id = v_run.parent and d.state in ('f', 'c')) and exists (select from sluice.task t where t.id = v_run.parent);
    perform sluice.workflow_cancel(v_run.id, 'the task that made it has ended');
    cancelled := 1;
    exit;
  end loop;
  -- A parent that was in another's hand when its children ended, as in that of a cancel which rolled back: nobody
  -- will wake it any more. Some at a time, so that no look takes long.
  -- guard: parents that nobody woke -> test/postgres/workflow/races.test.ts: "a parent whose cancel rolled back after its last child had ended wakes"
  perform sluice.workflow_wake(array(select p.id from (select x.id, x.runs from sluice.parent x where x.id > p_after_parent order by x.id limit 1000) p
    where /* guard:woken */ exists /* end */ (select from sluice.workflow_run r where r.id = any (p.runs) and r.finished_at is not null)));
  after_parent := coalesce((select x.id from sluice.parent x where x.id > p_after_parent order by x.id offset 999 limit 1), 0);
end $$;
