-- The value of one reference as JSON text; null for a path that leads nowhere. A node that failed or was cancelled has
-- only {"error": ...}, and an each that had begun also the results of its items.
create or replace function sluice.workflow_value(p_run bigint, p_node smallint, p_path text[], p_max int) returns text
language plpgsql stable as $$
declare v_kind sluice.node_kind; v_state sluice.state; v_outcome json; v_task bigint; v_total int;
begin
  if p_node = sluice.input_ref() then
    return coalesce((select (r.input #> p_path)::text from sluice.workflow_run r where r.id = p_run), 'null');
  end if;
  select n.kind, n.state, n.task, n.total,
    coalesce(n.outcome, (select d.outcome from sluice.done d where d.id = n.task limit 1))
  into v_kind, v_state, v_task, v_total, v_outcome
  from sluice.workflow_node n where n.run = p_run and n.node = p_node;
  if sluice.workflow_is_unsuccessful(v_state) then
    if v_kind = 'each' and v_total > 0 and (cardinality(p_path) = 0 or p_path[1] <> 'error') then
      return sluice.workflow_each(p_run, p_node, p_path, p_max);
    end if;
    return coalesce((json_build_object('error', coalesce(v_outcome, '{}'::json)) #> p_path)::text, 'null');
  elsif v_state = 'succeeded' and v_kind = 'each' then
    return sluice.workflow_each(p_run, p_node, p_path, p_max);
  elsif v_state = 'succeeded' then
    if v_task is not null and sluice.workflow_cut(v_outcome) then
      perform sluice.refuse('result_truncated', format(
        'the result of task %s was too large to be stored', v_task));
    end if;
    return coalesce((v_outcome #> p_path)::text, 'null');
  end if;
  return 'null';
end $$;
