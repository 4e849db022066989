-- Declares a graph: the same name and digest is the same graph, for every process that declares it, however often. A
-- graph that another of its name came after is the last again, as after a rollback: a write once per process and
-- deploy, not per start. Returns its id.
create or replace function sluice.workflow_declare(
  p_name text, p_digest text, p_graph json, p_steps json, p_result json default null
) returns int language plpgsql as $$
declare v_id int; v_declared bigint; v_missing text; v_behind text[];
begin
  select id, declared into v_id, v_declared from sluice.workflow_graph where name = p_name and digest = p_digest;
  if found then
    if not exists (select from sluice.workflow_graph where name = p_name and declared > v_declared) then
      return v_id;
    end if;
    update sluice.workflow_graph set declared = nextval('sluice.workflow_declared') where id = v_id;
    -- Else it was pruned at this moment.
    if found then
      return v_id;
    end if;
  end if;
  v_behind := sluice.workflow_check(p_steps, p_result);
  select s.value ->> 'type' into v_missing
  from json_array_elements(p_steps) s
  where s.value ->> 'kind' in ('task', 'each')
    and not exists (
      select from sluice.stream t
      where t.type = s.value ->> 'type' and t.queue = coalesce(s.value ->> 'queue', 'default'))
  limit 1;
  if found then
    perform sluice.refuse('unknown_task', format('task type %L was never declared on its queue', v_missing));
  end if;
  insert into sluice.workflow_graph (name, digest, graph, parts, ref_nodes, ref_paths)
  values (p_name, p_digest, p_graph,
    case when p_result is not null then sluice.workflow_texts(p_result -> 'parts') end,
    case when p_result is not null then sluice.workflow_texts(p_result -> 'nodes')::smallint[] end,
    case when p_result is not null then sluice.workflow_paths(p_result -> 'paths') end)
  on conflict do nothing returning id into v_id;
  if not found then
    return (select id from sluice.workflow_graph where name = p_name and digest = p_digest);
  end if;
  perform sluice.workflow_declare_steps(v_id, p_steps, v_behind);
  return v_id;
end $$;
