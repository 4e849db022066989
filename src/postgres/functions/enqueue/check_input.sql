-- Refuses an input that the client would refuse, for callers without the client. The cast to jsonb finds what json
-- accepts and no reader of jsonb can read: NUL and lone surrogates.
create or replace function sluice.check_input(p_input json) returns void language plpgsql as $$
begin
  if octet_length(p_input::text) > 1048576 then
    perform sluice.refuse('input_too_large', 'the input is larger than 1 MiB');
  end if;
  perform p_input::jsonb;
exception when data_exception or program_limit_exceeded then
  perform sluice.refuse('input_not_storable', 'the input cannot be stored: ' || sqlerrm);
end $$;
