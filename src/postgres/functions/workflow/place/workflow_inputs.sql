-- The rendered inputs of a node, beginning with the item p_from, at most p_max, as a JSON list.
create or replace function sluice.workflow_inputs(p_run bigint, p_node smallint, p_from int, p_max int) returns text
language plpgsql stable as $$
declare v record; s record;
begin
  select k.*, r.bytes_max into s
  from sluice.workflow_run r
  join sluice.workflow_step k on k.graph = r.graph and k.node = p_node
  where r.id = p_run;
  if s.kind = 'task' then
    return '[' || sluice.workflow_render(p_run, s.parts, s.ref_nodes, s.ref_paths, s.bytes_max) || ']';
  end if;
  select * into v from sluice.workflow_items(p_run, p_node);
  return (
    select '[' || coalesce(
      string_agg(
        sluice.workflow_item_input(e.value, e.n - 1, v.parts, v.kinds, v.paths, v.bytes_max), ',' order by e.n), '')
      || ']'
    from json_array_elements(v.items) with ordinality e(value, n)
    where e.n > p_from and e.n <= p_from + p_max);
end $$;
