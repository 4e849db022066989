-- The same name and digest is the same graph, whoever declares it and however often. One that another of its name came
-- after is the last again, as after a rollback: a write once per process and deploy, not per start.
create or replace function sluice.workflow_declare(p_name text, p_digest text, p_graph json, p_steps json, p_result json default null) returns int language plpgsql as $$
declare v_id int; v_declared bigint; v_missing text; v_behind text[];
begin
  select id, declared into v_id, v_declared from sluice.workflow_graph where name = p_name and digest = p_digest;
  if found then
    if not exists (select from sluice.workflow_graph where name = p_name and declared > v_declared) then return v_id; end if;
    update sluice.workflow_graph set declared = nextval('sluice.workflow_declared') where id = v_id;
    -- Else it was pruned at this moment.
    if found then return v_id; end if;
  end if;
  v_behind := sluice.workflow_check(p_steps, p_result);
  select s.value ->> 'type' into v_missing from json_array_elements(p_steps) s where s.value ->> 'kind' in ('task', 'each')
    and not exists (select from sluice.stream t where t.type = s.value ->> 'type' and t.queue = coalesce(s.value ->> 'queue', 'default')) limit 1;
  if found then perform sluice.refuse('unknown_task', format('task type %L was never declared on its queue', v_missing)); end if;
  insert into sluice.workflow_graph (name, digest, graph, parts, ref_nodes, ref_paths)
  values (p_name, p_digest, p_graph, case when p_result is not null then sluice.workflow_texts(p_result -> 'parts') end,
    case when p_result is not null then sluice.workflow_texts(p_result -> 'nodes')::smallint[] end, case when p_result is not null then sluice.workflow_paths(p_result -> 'paths') end)
  on conflict do nothing returning id into v_id;
  if not found then return (select id from sluice.workflow_graph where name = p_name and digest = p_digest); end if;
  insert into sluice.workflow_step (graph, node, name, kind, deps, dep_on, dep_recovers, successors, stream, rank, attempts, parts, ref_nodes, ref_paths,
    over_parts, over_nodes, over_paths, window_size, policy, test, test_value, ms, event)
  select v_id, s.n, s.step ->> 'name', k.kind, d.deps, d.dep_on, d.recovers,
    v_behind[s.n]::smallint[],
    case when k.kind in ('t', 'e') then (select t.id from sluice.stream t where t.type = s.step ->> 'type' and t.queue = coalesce(s.step ->> 'queue', 'default')) end,
    -(s.step ->> 'priority')::int, (s.step ->> 'attempts')::int,
    sluice.workflow_texts(s.step -> 'input' -> 'parts'), sluice.workflow_texts(s.step -> 'input' -> 'nodes')::smallint[], sluice.workflow_paths(s.step -> 'input' -> 'paths'),
    sluice.workflow_texts(x.t -> 'parts'), sluice.workflow_texts(x.t -> 'nodes')::smallint[], sluice.workflow_paths(x.t -> 'paths'),
    (s.step ->> 'window')::int, case when k.kind = 't' then 't' when k.kind <> 'e' then '-' else case coalesce(s.step ->> 'onError', 'failFast') when 'finish' then 'n' when 'collect' then 'o' else 'a' end end,
    s.step ->> 'is', s.step -> 'value', coalesce((s.step ->> 'ms')::bigint, (s.step ->> 'timeoutMs')::bigint), s.step ->> 'event'
  from json_array_elements(p_steps) with ordinality s(step, n)
  cross join lateral (select case s.step ->> 'kind' when 'task' then 't' when 'each' then 'e' when 'when' then 'w' when 'sleep' then 's' when 'waitFor' then 'v' end::"char" as kind) k
  cross join lateral (select case k.kind when 'e' then s.step -> 'items' when 'w' then s.step -> 'ref' when 's' then s.step -> 'until' end as t) x
  cross join lateral (
    select coalesce(array_agg(a.node order by a.node), '{}') as deps, coalesce(array_agg(a.letter order by a.node), '{}') as dep_on, coalesce(array_agg(a.recovers order by a.node), '{}') as recovers
    from (select (e.value ->> 'node')::smallint as node, bool_or(coalesce((e.value ->> 'recovers')::boolean, false)) as recovers,
        min(case coalesce(e.value ->> 'on', 'success') when 'success' then 's' when 'failure' then 'f' when 'end' then 'e' when 'then' then 't' when 'else' then 'o' end)::"char" as letter
      from json_array_elements(s.step -> 'after') e group by 1) a) d;
  return v_id;
end $$;
