-- What follows from tasks that were cancelled while they were not running: notes for the runs they belong to (p_notes),
-- the end of their fan-outs, and a wake-up for tasks that their slots let through, which no enqueue announces.
create or replace function sluice.cancel_effects(p_gone bigint[], p_notes boolean) returns void
language plpgsql /* settings: index plans */ as $$
begin
  if p_notes then
    insert into sluice.workflow_note (id, run)
    select w.id, w.run
    from unnest(p_gone) u(id)
    cross join lateral (select x.id, x.run from sluice.workflow_task x where x.id = u.id limit 1) w;
    if found then perform sluice.poll_by(sluice.clock() + interval '100 milliseconds'); end if;
  end if;
  perform sluice.workflow_note_orphans_of(p_gone);
  if exists (select from sluice.worker where asleep) then
    perform sluice.ring(
      array(select distinct t.stream from sluice.task t where t.id = any (p_gone) and t.lanes is not null),
      cardinality(p_gone));
  end if;
end $$;
