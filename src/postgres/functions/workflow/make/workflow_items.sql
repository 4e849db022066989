-- The items of an each as one JSON text, and the parts of their inputs, in which only what differs by item is left
-- open: kinds and paths say what goes between the parts. Refuses more than a task may be given, before it is put
-- together.
create or replace function sluice.workflow_items(
  p_run bigint, p_node smallint,
  out items json, out parts text[], out kinds smallint[], out paths text[], out bytes_max int
) language plpgsql stable as $$
declare v record; v_part text; v_value text; v_bytes bigint := 0;
begin
  select s.*, r.bytes_max as max into v
  from sluice.workflow_run r
  join sluice.workflow_step s on s.graph = r.graph and s.node = p_node
  where r.id = p_run;
  bytes_max := v.max;
  items := sluice.workflow_render(
    p_run, v.over_parts, v.over_nodes, v.over_paths, sluice.workflow_list_bytes_max())::json;
  parts := '{}';
  kinds := '{}';
  paths := '{}';
  v_part := v.parts[1];
  -- Without items there is nothing to render.
  if json_typeof(items) <> 'array' or json_array_length(items) = 0 then
    return;
  end if;
  for i in 1..cardinality(v.ref_nodes) loop
    if v.ref_nodes[i] >= 0 then
      v_value := sluice.workflow_value(p_run, v.ref_nodes[i], v.ref_paths[i]::text[], v.max);
      -- Each item is given all of it.
      v_bytes := v_bytes + octet_length(v_value);
      if v_bytes > v.max then
        perform sluice.workflow_too_large(v_bytes, v.max);
      end if;
      v_part := v_part || v_value || v.parts[i + 1];
    else
      parts := parts || v_part;
      kinds := kinds || v.ref_nodes[i];
      paths := paths || v.ref_paths[i];
      v_part := v.parts[i + 1];
    end if;
  end loop;
  parts := parts || v_part;
end $$;
