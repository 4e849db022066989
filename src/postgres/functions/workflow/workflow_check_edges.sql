-- Refuses compiled steps in which a node comes after what is no node, or on what that node does not tell. p_n: how
-- many. Returns per node the nodes after it, as the text of an int[], and how many nodes it comes after (blocked).
create or replace function sluice.workflow_check_edges(p_steps json, p_n int, out behind text[], out blocked int[])
language plpgsql as $$
declare v_bad text; v_kinds text[] := array(select s.value ->> 'kind' from json_array_elements(p_steps) s);
begin
  with edge as materialized (
    select distinct s.n::int as node, (a.value ->> 'node')::int as before,
      coalesce(a.value ->> 'on', 'success') as on_what
    from json_array_elements(p_steps) with ordinality s(step, n)
    cross join lateral json_array_elements(s.step -> 'after') a
  ), bad as (
    select p_steps -> (e.node - 1) ->> 'name' as name
    from edge e
    where (e.before between 1 and p_n and case
      when e.on_what in ('then', 'else') then v_kinds[e.before] = 'when'
      else e.on_what in ('success', 'failure', 'end') end) is not true
    limit 1
  )
  select (select name from bad),
    array_agg(coalesce(b.list, '{}') order by g.n),
    array_agg(coalesce(d.n, 0) order by g.n)
  into v_bad, behind, blocked
  from generate_series(1, p_n) g(n)
  left join (
    select e.before, array_agg(distinct e.node order by e.node)::text as list from edge e group by e.before
  ) b on b.before = g.n
  left join (
    select e.node, count(distinct e.before)::int as n from edge e group by e.node
  ) d on d.node = g.n;
  if v_bad is not null then
    perform sluice.refuse('invalid_workflow', format(
      'node %L comes after a node that does not exist, or on an outcome that the node does not have', v_bad));
  end if;
end $$;
