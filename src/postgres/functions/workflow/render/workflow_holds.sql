-- Whether the condition of a `when` holds for the value p_text, which is JSON.
create or replace function sluice.workflow_holds(p_text text, p_test text, p_value json) returns boolean
language plpgsql immutable as $$
declare v json := p_text::json; v_type text := json_typeof(v);
begin
  return case p_test
    when 'exists' then v_type <> 'null'
    when 'equals' then v::jsonb = coalesce(p_value::jsonb, 'null')
    when 'differs' then v::jsonb <> coalesce(p_value::jsonb, 'null')
    when 'above' then
      v_type = 'number' and json_typeof(p_value) = 'number' and v::text::numeric > p_value::text::numeric
    when 'below' then
      v_type = 'number' and json_typeof(p_value) = 'number' and v::text::numeric < p_value::text::numeric
    else case v_type
      when 'null' then false
      when 'boolean' then v::text::boolean
      when 'number' then v::text::numeric <> 0
      when 'string' then v #>> '{}' <> ''
      else true end
  end;
end $$;
