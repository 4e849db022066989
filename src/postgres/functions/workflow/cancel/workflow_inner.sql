-- What tasks have fanned out that are cancelled, and what the items of that have, as far as there is something to do: it
-- is not being cancelled yet, or there are items nobody has looked at. By id, at most p_max. Of these tasks; or of all
-- tasks of a run that is being cancelled, but for those that run: they hear of it, and what they have made goes with
-- their end. The same holds for items. One that was cancelled leads to what its items have, also when it is over. Looks
-- by id and not by joins, which may walk all that ever ended.
create or replace function sluice.workflow_inner(p_run bigint, p_tasks bigint[], p_max int) returns bigint[]
language plpgsql stable /* settings: index plans */ as $$
begin
  if not exists (select from sluice.workflow_run r where r.parent is not null) then return '{}'; end if;
  return array(with recursive made as (
    (select r.id, r.stopping, r.finished_at from unnest(p_tasks) u(id) cross join lateral (select k.id, k.stopping, k.finished_at from sluice.workflow_run k where k.parent = u.id offset 0) r
      where (r.finished_at is null or r.stopping) and (select d.state from sluice.done d where d.id = u.id limit 1) in ('f', 'c')
    union all select k.id, k.stopping, k.finished_at from sluice.workflow_run k where k.outer_run = p_run and (k.finished_at is null or k.stopping)
      and (select true from sluice.running x where x.id = k.parent limit 1) is null and (select d.state from sluice.done d where d.id = k.parent limit 1) is distinct from 's')
    union select k.id, k.stopping, k.finished_at from made m cross join lateral (select x.* from sluice.workflow_run x where x.outer_run = m.id and (x.finished_at is null or x.stopping)) k
      where (select true from sluice.running x where x.id = k.parent limit 1) is null and (select d.state from sluice.done d where d.id = k.parent limit 1) is distinct from 's'
  ) select m.id from made m where m.finished_at is null and (not m.stopping or (select true from sluice.workflow_halt h where h.run = m.id and h.item is not null limit 1)) order by m.id limit p_max);
end $$;
