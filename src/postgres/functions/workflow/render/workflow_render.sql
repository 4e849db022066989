-- Renders a template: its parts, with the values of its references between them. Refuses more than p_max bytes.
create or replace function sluice.workflow_render(
  p_run bigint, p_parts text[], p_nodes smallint[], p_paths text[], p_max int
) returns text language plpgsql stable as $$
declare v_texts text[] := p_parts[1:1]; v_value text; v_bytes bigint := octet_length(p_parts[1]);
begin
  for i in 1..cardinality(p_nodes) loop
    v_value := sluice.workflow_value(p_run, p_nodes[i], p_paths[i]::text[], p_max);
    -- guard: counted before it is joined -> test/postgres/workflow/many.test.ts: "an input that is too large is refused before all of it is read"
    v_bytes := v_bytes + octet_length(v_value) + octet_length(p_parts[i + 1]);
    if /* guard:bytes */ v_bytes > p_max /* end */ then
      perform sluice.workflow_too_large(v_bytes, p_max);
    end if;
    v_texts := v_texts || v_value || p_parts[i + 1];
  end loop;
  return sluice.workflow_fit(array_to_string(v_texts, ''), p_max);
end $$;
