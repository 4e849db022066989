-- All nodes of a graph that come after one of these, directly or not, in order. Runs under the settings of
-- workflow_retry.
create or replace function sluice.workflow_after(p_graph int, p_nodes smallint[]) returns smallint[]
language plpgsql as $$
declare v_after smallint[];
begin
  with recursive after as (
    select x.node
    from sluice.workflow_step s
    cross join lateral unnest(s.successors) x(node)
    where s.graph = p_graph and s.node = any (p_nodes)
    union
    select x.node
    from after a
    join sluice.workflow_step s on s.graph = p_graph and s.node = a.node
    cross join lateral unnest(s.successors) x(node)
  )
  select coalesce(array_agg(node order by node), '{}') into v_after from after;
  return v_after;
end $$;
