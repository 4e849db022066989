-- What the definition cannot do wrong, for those who come without it. Returns what comes after each node, as the
-- text of an int[]. Every node and every dependency is looked at a fixed number of times, for there may be many.
create or replace function sluice.workflow_check(p_steps json, p_result json) returns text[] language plpgsql as $$
declare v_n int := case when json_typeof(p_steps) = 'array' then json_array_length(p_steps) else 0 end; v_bad text; v_kinds text[]; v_behind text[]; v_left int[]; v_free int[]; v_next int; v_head int := 0;
begin
  if v_n not between 1 and 500 then perform sluice.refuse('invalid_workflow', 'a workflow has 1 to 500 nodes'); end if;
  select s.value ->> 'name' into v_bad from json_array_elements(p_steps) s group by 1 having count(*) > 1 or s.value ->> 'name' is null limit 1;
  if found then perform sluice.refuse('invalid_workflow', format('every node needs a name of its own: %L', v_bad)); end if;
  select s.value ->> 'name' into v_bad from json_array_elements(p_steps) s where case s.value ->> 'kind'
    when 'task' then s.value ->> 'type' is not null and sluice.workflow_template(s.value -> 'input', v_n)
    when 'each' then s.value ->> 'type' is not null and sluice.workflow_template(s.value -> 'input', v_n) and sluice.workflow_template(s.value -> 'items', v_n)
      and coalesce(s.value ->> 'onError', 'failFast') in ('failFast', 'finish', 'collect')
    when 'when' then sluice.workflow_template(s.value -> 'ref', v_n) and s.value ->> 'is' in ('truthy', 'equals', 'differs', 'above', 'below', 'exists')
    when 'sleep' then case when s.value -> 'until' is null then (s.value ->> 'ms')::bigint between 0 and 31536000000 else sluice.workflow_template(s.value -> 'until', v_n) end
    when 'waitFor' then s.value ->> 'event' is not null and coalesce((s.value ->> 'timeoutMs')::bigint, 1) between 1 and 31536000000 end is not true limit 1;
  if found then
    perform sluice.refuse('invalid_workflow', format('node %L is not what its kind asks for; a template has one part more than references, each to a node that exists', v_bad)); end if;
  if p_result is not null and not sluice.workflow_template(p_result, v_n) then perform sluice.refuse('invalid_workflow', 'the result is no template of nodes that exist'); end if;
  if exists (select from json_array_elements(p_steps) s where (s.value ->> 'window')::int < 1 or (s.value ->> 'attempts')::int not between 1 and 32000 or (s.value ->> 'priority')::int not between -32000 and 32000) then
    perform sluice.refuse('invalid_workflow', 'a window is at least 1, attempts are 1 to 32000, a priority is -32000 to 32000'); end if;
  v_kinds := array(select s.value ->> 'kind' from json_array_elements(p_steps) s);
  with edge as materialized (
    select distinct s.n::int as node, (a.value ->> 'node')::int as before, coalesce(a.value ->> 'on', 'success') as on_what
    from json_array_elements(p_steps) with ordinality s(step, n) cross join lateral json_array_elements(s.step -> 'after') a
  ), bad as (
    select p_steps -> (e.node - 1) ->> 'name' as name from edge e where (e.before between 1 and v_n and case when e.on_what in ('then', 'else') then v_kinds[e.before] = 'when' else e.on_what in ('success', 'failure', 'end') end) is not true limit 1
  )
  select (select name from bad), array_agg(coalesce(b.list, '{}') order by g.n), array_agg(coalesce(d.n, 0) order by g.n) into v_bad, v_behind, v_left
  from generate_series(1, v_n) g(n)
  left join (select e.before, array_agg(distinct e.node order by e.node)::text as list from edge e group by e.before) b on b.before = g.n
  left join (select e.node, count(distinct e.before)::int as n from edge e group by e.node) d on d.node = g.n;
  if v_bad is not null then perform sluice.refuse('invalid_workflow', format('node %L comes after what is no node, or on what that node does not tell', v_bad)); end if;
  -- Those that wait for nothing are free, and each frees what waits for nothing else: all, unless there is a circle.
  v_free := array(select n from generate_series(1, v_n) n where v_left[n] = 0);
  while v_head < cardinality(v_free) loop
    v_head := v_head + 1;
    foreach v_next in array v_behind[v_free[v_head]]::int[] loop
      v_left[v_next] := v_left[v_next] - 1;
      if v_left[v_next] = 0 then v_free := v_free || v_next; end if;
    end loop;
  end loop;
  if v_head < v_n then perform sluice.refuse('invalid_workflow', 'nodes wait for each other in a circle: ' || sluice.workflow_circle(p_steps, v_behind, v_left)); end if;
  return v_behind;
exception when data_exception then
  perform sluice.refuse('invalid_workflow', 'this is no compiled workflow: ' || sqlerrm);
end $$;
