-- The input of one item: p_parts, with the item's values at p_paths or its index (index_ref) between them. Refuses more
-- than p_max bytes.
create or replace function sluice.workflow_item_input(
  p_item json, p_index bigint, p_parts text[], p_refs smallint[], p_paths text[], p_max int
) returns text language plpgsql immutable as $$
declare v_text text := p_parts[1];
begin
  for i in 1..cardinality(p_refs) loop
    v_text := v_text
      || case
        when p_refs[i] = sluice.index_ref() then p_index::text
        else coalesce((p_item #> p_paths[i]::text[])::text, 'null') end
      || p_parts[i + 1];
  end loop;
  if octet_length(v_text) > p_max then
    return sluice.workflow_fit(v_text, p_max);
  end if;
  return v_text;
end $$;
