-- Returns the text, or refuses it if it has more than p_max bytes.
create or replace function sluice.workflow_fit(p_text text, p_max int) returns text language plpgsql immutable as $$
begin
  if octet_length(p_text) > p_max then
    perform sluice.refuse('input_too_large', format(
      'the rendered JSON has %s bytes, but only %s are allowed', octet_length(p_text), p_max));
  end if;
  return p_text;
end $$;
