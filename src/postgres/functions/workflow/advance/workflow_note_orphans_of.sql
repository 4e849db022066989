-- Records that these tasks failed or were cancelled, so that a keeper cancels their fan-outs. Only inserts, takes no
-- locks.
create or replace function sluice.workflow_note_orphans_of(p_ids bigint[]) returns void
language plpgsql /* settings: index plans */ as $$
begin
  if not exists (
    select from sluice.workflow_run r where r.parent is not null and r.finished_at is null and not r.stopping
  ) then
    return;
  end if;
  insert into sluice.workflow_orphan (run)
  select r.id
  from unnest(p_ids) u(id)
  cross join lateral (
    select k.id, k.finished_at, k.stopping from sluice.workflow_run k where k.parent = u.id offset 0
  ) r
  where r.finished_at is null and not r.stopping;
end $$;
