-- A JSON list of lists of texts as a list of texts of text[], in order.
create or replace function sluice.workflow_paths(p_paths json) returns text[] language sql immutable as $$
  select array(
    select array(select json_array_elements_text(p.value))::text
    from json_array_elements(p_paths) with ordinality p(value, n) order by p.n)
$$;
