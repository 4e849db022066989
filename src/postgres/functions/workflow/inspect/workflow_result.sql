-- The result of a run as JSON text, or null. Refuses more than p_max bytes.
create or replace function sluice.workflow_result(p_run bigint, p_max int) returns text language plpgsql stable as $$
declare r sluice.workflow_run; g sluice.workflow_graph; v record; v_text text := '';
begin
  select * into r from sluice.workflow_run where id = p_run;
  if r.pruning then
    perform sluice.refuse('run_not_found', 'there is no such run');
  end if;
  if r.graph is null then
    return sluice.workflow_each(p_run, 1::smallint, '{}', p_max);
  end if;
  select * into g from sluice.workflow_graph where id = r.graph;
  if g.parts is not null then
    return sluice.workflow_render(p_run, g.parts, g.ref_nodes, g.ref_paths, p_max);
  end if;
  for v in
    select s.node, s.name from sluice.workflow_step s where s.graph = r.graph and s.successors = '{}' order by s.node
  loop
    v_text := v_text || case when v_text = '' then '' else ',' end || to_json(v.name)::text || ':'
      || sluice.workflow_value(p_run, v.node, '{}', p_max);
    perform sluice.workflow_fit(v_text, p_max);
  end loop;
  return '{' || v_text || '}';
end $$;
