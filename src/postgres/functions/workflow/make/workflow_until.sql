-- The time until which the node p_name sleeps, from the rendered JSON text p_json. Refuses what is no time, or is more
-- than a hundred years from p_now.
create or replace function sluice.workflow_until(p_name text, p_json text, p_now timestamptz) returns timestamptz
language plpgsql as $$
declare v_text text := p_json::json #>> '{}'; v_at timestamptz := sluice.workflow_time(v_text);
begin
  if v_at is null or v_at not between p_now - interval '100 years' and p_now + interval '100 years' then
    perform sluice.refuse('invalid_option', format(
      'node %s cannot sleep until %s: use ISO 8601 text or milliseconds since 1970, within 100 years',
      to_json(p_name),
      case when v_text is null then 'null (the reference finds nothing, or null)'
        else to_json(left(v_text, 100))::text end));
  end if;
  return v_at;
end $$;
