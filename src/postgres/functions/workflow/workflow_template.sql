-- Whether this is a template whose references are to nodes that exist. p_nodes: how many nodes there are.
create or replace function sluice.workflow_template(p_template json, p_nodes int) returns boolean
language sql immutable as $$
  select coalesce(
    json_array_length(p_template -> 'parts') = json_array_length(p_template -> 'nodes') + 1
    and json_array_length(p_template -> 'nodes') = json_array_length(p_template -> 'paths')
    and not exists (
      select from json_array_elements_text(p_template -> 'nodes') n
      where n::int not between sluice.index_ref() and p_nodes), false)
$$;
