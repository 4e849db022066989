-- Why an each cannot begin with these items, as its node shows it; null if it can. p_parts: what every item is given.
create or replace function sluice.workflow_items_error(p_items json, p_parts text[]) returns json
language plpgsql immutable as $$
declare v_type text := json_typeof(p_items); v_total int;
begin
  if v_type <> 'array' then
    return sluice.workflow_error('items_not_a_list', 'the items must be a list, not '
      || case v_type when 'null' then 'null: the reference finds nothing' else 'a JSON ' || v_type end);
  end if;
  v_total := json_array_length(p_items);
  if v_total > 1000000
    or v_total::bigint * (select coalesce(sum(octet_length(p)), 0) from unnest(p_parts) p) > 1073741824 then
    return sluice.workflow_error('input_too_large', format(
      '%s items with what each of them is given are more than a fan-out may have', v_total));
  end if;
  return null;
end $$;
