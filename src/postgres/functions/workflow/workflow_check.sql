-- Checks compiled steps that come without the definition, which cannot get these things wrong; refuses what is no
-- workflow. Looks at every node and every dependency a fixed number of times, because there may be many. Returns what
-- comes after each node, as the text of an int[].
create or replace function sluice.workflow_check(p_steps json, p_result json) returns text[] language plpgsql as $$
declare
  v_n int := case when json_typeof(p_steps) = 'array' then json_array_length(p_steps) else 0 end;
  v_behind text[]; v_left int[]; v_free int[]; v_next int; v_head int := 0;
begin
  if v_n not between 1 and 500 then
    perform sluice.refuse('invalid_workflow', 'a workflow must have 1 to 500 nodes');
  end if;
  perform sluice.workflow_check_nodes(p_steps, v_n);
  if p_result is not null and not sluice.workflow_template(p_result, v_n) then
    perform sluice.refuse('invalid_workflow',
      'the result is not a valid template, or refers to a node that does not exist');
  end if;
  select e.behind, e.blocked into v_behind, v_left from sluice.workflow_check_edges(p_steps, v_n) e;
  -- Nodes that wait for nothing are free, and each frees those that wait for nothing else: all, unless there is a
  -- circle.
  v_free := array(select n from generate_series(1, v_n) n where v_left[n] = 0);
  while v_head < cardinality(v_free) loop
    v_head := v_head + 1;
    foreach v_next in array v_behind[v_free[v_head]]::int[] loop
      v_left[v_next] := v_left[v_next] - 1;
      if v_left[v_next] = 0 then
        v_free := v_free || v_next;
      end if;
    end loop;
  end loop;
  if v_head < v_n then
    perform sluice.refuse('invalid_workflow',
      'nodes wait for each other in a cycle: ' || sluice.workflow_circle(p_steps, v_behind, v_left));
  end if;
  return v_behind;
exception when data_exception then
  perform sluice.refuse('invalid_workflow', 'not a compiled workflow: ' || sqlerrm);
end $$;
