-- The fan-outs of cancelled tasks, and the fan-outs of their items, as far as there is something to do: they are not
-- being cancelled yet, or have items that no cancel has looked at. By id, at most p_max.
--
-- Either those of p_tasks, or those of all tasks of the run p_run, which is being cancelled, but for tasks that run:
-- these are asked to stop, and their fan-outs are cancelled when they end. The same holds for items. A cancelled
-- fan-out leads to those of its items also when it is over. Looks up by id instead of joining, which might walk all
-- that ever ended.
create or replace function sluice.workflow_inner_maps(p_run bigint, p_tasks bigint[], p_max int) returns bigint[]
language plpgsql stable /* settings: index plans */ as $$
begin
  if not exists (select from sluice.workflow_run r where r.parent is not null) then
    return '{}';
  end if;
  return array(
    with recursive made as (
      (select r.id, r.stopping, r.finished_at
        from unnest(p_tasks) u(id)
        cross join lateral (
          select k.id, k.stopping, k.finished_at from sluice.workflow_run k where k.parent = u.id offset 0
        ) r
        where (r.finished_at is null or r.stopping)
          and (select d.state from sluice.done d where d.id = u.id limit 1) in ('failed', 'cancelled')
      union all
      select k.id, k.stopping, k.finished_at
        from sluice.workflow_run k
        where k.outer_run = p_run and (k.finished_at is null or k.stopping)
          and (select true from sluice.running x where x.id = k.parent limit 1) is null
          and (select d.state from sluice.done d where d.id = k.parent limit 1) is distinct from 'succeeded')
      union
      select k.id, k.stopping, k.finished_at
      from made m
      cross join lateral (
        select x.* from sluice.workflow_run x where x.outer_run = m.id and (x.finished_at is null or x.stopping)
      ) k
      where (select true from sluice.running x where x.id = k.parent limit 1) is null
        and (select d.state from sluice.done d where d.id = k.parent limit 1) is distinct from 'succeeded'
    )
    select m.id
    from made m
    where m.finished_at is null
      and (not m.stopping
        or (select true from sluice.workflow_halt h where h.run = m.id and h.item is not null limit 1))
    order by m.id limit p_max);
end $$;
