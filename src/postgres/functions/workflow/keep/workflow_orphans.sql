-- Cancels a fan-out of a handler whose task failed, was cancelled or is gone, because its result is never read. Cancels
-- one of at most p_max that were noted, so that no other run is locked meanwhile. Takes the barrier shared, then notes
-- and runs with SKIP LOCKED.
--
-- p_after, p_after_parent: the fan-out and the parent up to which a walk over them has come, 0 to begin. So each is
-- looked at once in a round, wherever its id lies. Returns how many were cancelled (0 or 1), and where to go on.
create or replace function sluice.workflow_orphans(
  p_max int, p_after bigint default 0, p_after_parent bigint default 0,
  out cancelled int, out after bigint, out after_parent bigint
) language plpgsql /* settings: index plans */ as $$
declare v record; v_run sluice.workflow_run;
begin
  cancelled := 0;
  after := p_after;
  perform sluice.barrier_shared();
  if not exists (select from sluice.workflow_orphan) then
    after := sluice.workflow_note_orphans(p_after);
  end if;
  for v in
    select o.ctid as tid, o.run from sluice.workflow_orphan o order by o.run limit p_max for update skip locked
  loop
    -- guard: what is left of a task is locked before the task is looked at -> test/postgres/workflow/races.test.ts: "a map continues if its task is retried before the map is cancelled"
    select * into v_run from sluice.workflow_run where id = v.run
      /* guard:lock */ for no key update skip locked /* end */;
    -- Another transaction holds it: next time.
    continue when not found and exists (select from sluice.workflow_run where id = v.run);
    delete from sluice.workflow_orphan where ctid = v.tid;
    continue when v_run.id is null or v_run.finished_at is not null or v_run.stopping;
    -- The task may have been retried since.
    continue when exists (select from sluice.task t where t.id = v_run.parent)
      and not exists (
        select from sluice.done d where d.id = v_run.parent and sluice.workflow_is_unsuccessful(d.state));
    perform sluice.workflow_cancel(v_run.id, 'the task that started it has ended');
    cancelled := 1;
    exit;
  end loop;
  -- A parent that another transaction held when its children ended, such as a cancel that rolled back, is woken by
  -- nothing else. A limited number at a time, so that no call takes long.
  -- guard: parents that nobody woke -> test/postgres/workflow/races.test.ts: "a parent whose cancel rolled back after its last item had ended wakes"
  perform sluice.workflow_wake(array(
    select p.id
    from (select x.id, x.runs from sluice.parent x where x.id > p_after_parent order by x.id limit 1000) p
    where /* guard:woken */ exists /* end */ (
      select from sluice.workflow_run r where r.id = any (p.runs) and r.finished_at is not null)));
  after_parent := coalesce(
    (select x.id from sluice.parent x where x.id > p_after_parent order by x.id offset 999 limit 1), 0);
end $$;
