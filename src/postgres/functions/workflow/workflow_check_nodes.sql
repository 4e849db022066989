-- Refuses compiled steps in which a node has no name of its own, or is not what its kind asks for. p_n: how many.
create or replace function sluice.workflow_check_nodes(p_steps json, p_n int) returns void language plpgsql as $$
declare v_bad text;
begin
  select s.value ->> 'name' into v_bad
  from json_array_elements(p_steps) s
  group by 1 having count(*) > 1 or s.value ->> 'name' is null limit 1;
  if found then
    perform sluice.refuse('invalid_workflow', format('every node needs a unique name: %L', v_bad));
  end if;
  select s.value ->> 'name' into v_bad
  from json_array_elements(p_steps) s
  where case s.value ->> 'kind'
    when 'task' then s.value ->> 'type' is not null and sluice.workflow_template(s.value -> 'input', p_n)
    when 'each' then s.value ->> 'type' is not null and sluice.workflow_template(s.value -> 'input', p_n)
      and sluice.workflow_template(s.value -> 'items', p_n)
      and coalesce(s.value ->> 'onError', 'failFast') in ('failFast', 'finish', 'collect')
    when 'when' then sluice.workflow_template(s.value -> 'ref', p_n)
      and s.value ->> 'is' in ('truthy', 'equals', 'differs', 'above', 'below', 'exists')
    when 'sleep' then case
      when s.value -> 'until' is null then (s.value ->> 'ms')::bigint between 0 and 31536000000
      else sluice.workflow_template(s.value -> 'until', p_n) end
    when 'waitFor' then s.value ->> 'event' is not null
      and coalesce((s.value ->> 'timeoutMs')::bigint, 1) between 1 and 31536000000
    end is not true
  limit 1;
  if found then
    perform sluice.refuse('invalid_workflow', format(
      'node %L does not have the fields of its kind; '
      'a template has one part more than references, and each reference names a node that exists', v_bad));
  end if;
  if exists (
    select from json_array_elements(p_steps) s
    where (s.value ->> 'window')::int < 1
      or (s.value ->> 'attempts')::int not between 1 and 32000
      or (s.value ->> 'priority')::int not between -32000 and 32000
  ) then
    perform sluice.refuse('invalid_workflow',
      'a window must be at least 1, attempts from 1 to 32000, a priority from -32000 to 32000');
  end if;
end $$;
