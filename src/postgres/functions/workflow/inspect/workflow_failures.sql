-- Why a run did not succeed: its nodes that failed or were cancelled, at most p_max, those first that no branch has
-- caught. For an each, the first item that failed, else the first that was cancelled, and not because of another item.
create or replace function sluice.workflow_failures(p_run bigint, p_max int)
returns table (node text, state text, item int, error json, recovered boolean) language sql stable as $$
  select coalesce(s.name, r.name), n.state::text, i.item,
    case when n.kind = 'each' then coalesce(i.outcome, n.outcome) else coalesce(n.outcome, i.outcome) end,
    exists (
      select
      from sluice.workflow_step k
      cross join lateral unnest(k.deps, k.dep_on, k.dep_recovers) d(node, dep_on, recovers)
      join sluice.workflow_node x on x.run = r.id and x.node = k.node and x.state = 'succeeded'
      where k.graph = r.graph and d.node = n.node and d.dep_on = 'failure' and d.recovers) as caught
  from sluice.workflow_run r
  join sluice.workflow_node n on n.run = r.id and n.state in ('failed', 'cancelled')
  left join sluice.workflow_step s on s.graph = r.graph and s.node = n.node
  left join lateral (
    select case when n.kind = 'each' then x.item end as item, x.outcome
    from (
      -- Each of these walks the items in their order, and ends at the first.
      (select 1 as n, w.item, d.outcome
        from sluice.workflow_task w
        cross join lateral (select outcome from sluice.done where id = w.id and state = 'failed' limit 1) d
        where n.failed > 0 and w.run = r.id and w.node = n.node
        order by w.item limit 1)
      union all
      (select 2, w.item, d.outcome
        from sluice.workflow_task w
        cross join lateral (select outcome from sluice.done where id = w.id and state = 'cancelled' limit 1) d
        where n.failed = 0 and w.run = r.id and w.node = n.node
          and d.outcome ->> 'reason' is distinct from sluice.workflow_sibling_reason()
        order by w.item limit 1)
      union all
      (select 3, w.item, d.outcome
        from sluice.workflow_task w
        cross join lateral (select outcome from sluice.done where id = w.id and state = 'cancelled' limit 1) d
        where n.failed = 0 and w.run = r.id and w.node = n.node
        order by w.item limit 1)
    ) x
    order by x.n limit 1
  ) i on true
  where r.id = p_run
  order by caught, n.state = 'failed' desc, n.finished_at, n.node limit p_max
$$;
