-- A JSON list of texts as a text[].
create or replace function sluice.workflow_texts(p_list json) returns text[] language sql immutable as $$
  select array(select json_array_elements_text(p_list))
$$;
