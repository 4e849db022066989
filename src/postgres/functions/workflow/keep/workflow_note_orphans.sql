-- Notes fan-outs whose task has ended or is gone and that were not noted then: a handler that went on after it had lost
-- its task may have made one after the task's end. Looks at 200 at a time, from p_after on, so that no call takes long.
-- Takes no locks. Runs under the settings of workflow_orphans. Returns where to go on, 0: at the beginning.
create or replace function sluice.workflow_note_orphans(p_after bigint) returns bigint language plpgsql as $$
declare v_look bigint[];
begin
  v_look := array(
    select x.id from sluice.workflow_run x
    where x.parent is not null and x.finished_at is null and not x.stopping and x.id > p_after
    order by x.id limit 200);
  insert into sluice.workflow_orphan (run)
  select r.id
  from (select x.id, x.parent from sluice.workflow_run x where x.id = any (v_look)) r
  left join lateral (select k.id from sluice.task k where k.id = r.parent limit 1) t on true
  left join lateral (select k.state from sluice.done k where k.id = t.id limit 1) d on true
  where t.id is null or sluice.workflow_is_unsuccessful(d.state);
  return coalesce(v_look[200], 0);
end $$;
