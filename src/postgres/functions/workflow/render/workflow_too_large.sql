-- Refuses a text that would be too large, before it is put together: a thousand references to large results must not be
-- in memory, and beyond 1 GB no text could hold them, so that the settle that joins them would fail for ever.
create or replace function sluice.workflow_too_large(p_bytes bigint, p_max int) returns void language plpgsql as $$
begin
  perform sluice.refuse('input_too_large', format(
    'the rendered JSON has at least %s bytes, but only %s are allowed', p_bytes, p_max));
end $$;
