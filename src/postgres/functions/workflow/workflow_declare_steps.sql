-- Inserts the steps of a new graph. p_behind: what comes after each node, as workflow_check returns it.
create or replace function sluice.workflow_declare_steps(p_graph int, p_steps json, p_behind text[]) returns void
language plpgsql as $$
begin
  insert into sluice.workflow_step (
    graph, node, name, kind, deps, dep_on, dep_recovers, successors, stream, rank, attempts,
    parts, ref_nodes, ref_paths, over_parts, over_nodes, over_paths, window_size, policy,
    test, test_value, ms, event)
  select p_graph, s.n, s.step ->> 'name', k.kind, d.deps, d.dep_on, d.recovers,
    p_behind[s.n]::smallint[],
    case when k.kind in ('task', 'each') then (
      select t.id from sluice.stream t
      where t.type = s.step ->> 'type' and t.queue = coalesce(s.step ->> 'queue', 'default')) end,
    -(s.step ->> 'priority')::int, (s.step ->> 'attempts')::int,
    sluice.workflow_texts(s.step -> 'input' -> 'parts'),
    sluice.workflow_texts(s.step -> 'input' -> 'nodes')::smallint[],
    sluice.workflow_paths(s.step -> 'input' -> 'paths'),
    sluice.workflow_texts(x.t -> 'parts'),
    sluice.workflow_texts(x.t -> 'nodes')::smallint[],
    sluice.workflow_paths(x.t -> 'paths'),
    (s.step ->> 'window')::int,
    case k.kind
      when 'task' then 'task'
      when 'each' then coalesce(s.step ->> 'onError', 'failFast')
      else 'none' end::sluice.node_policy,
    s.step ->> 'is', s.step -> 'value', coalesce((s.step ->> 'ms')::bigint, (s.step ->> 'timeoutMs')::bigint),
    s.step ->> 'event'
  from json_array_elements(p_steps) with ordinality s(step, n)
  cross join lateral (select (s.step ->> 'kind')::sluice.node_kind as kind) k
  cross join lateral (
    select case k.kind
      when 'each' then s.step -> 'items' when 'when' then s.step -> 'ref' when 'sleep' then s.step -> 'until' end as t
  ) x
  cross join lateral (
    select coalesce(array_agg(a.node order by a.node), '{}') as deps,
      coalesce(array_agg(a.dep_on order by a.node), '{}') as dep_on,
      coalesce(array_agg(a.recovers order by a.node), '{}') as recovers
    from (
      select (e.value ->> 'node')::smallint as node,
        bool_or(coalesce((e.value ->> 'recovers')::boolean, false)) as recovers,
        min(coalesce(e.value ->> 'on', 'success'))::sluice.dependency as dep_on
      from json_array_elements(s.step -> 'after') e group by 1
    ) a
  ) d;
end $$;
