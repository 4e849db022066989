-- A time as a sleep takes it: milliseconds since 1970, or ISO text, in UTC where it names no offset. Null for other
-- texts: what the server makes of 'tomorrow' or of 1/2/2030 depends on the session and on the day.
create or replace function sluice.workflow_time(p_text text) returns timestamptz
language plpgsql stable set timezone = 'UTC' as $$
begin
  return case
    when p_text ~ '^-?[0-9]{1,15}([.][0-9]+)?$' then to_timestamp(p_text::numeric / 1000)
    when p_text ~* ('^[0-9]{4}-[0-9]{2}-[0-9]{2}'
      '([t ][0-9]{2}:[0-9]{2}(:[0-9]{2}([.][0-9]+)?)?(z|[+-][0-9]{2}(:?[0-9]{2})?)?)?$') then p_text::timestamptz
    end;
end $$;
