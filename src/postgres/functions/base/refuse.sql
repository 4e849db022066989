-- Raises an error with a code. The code is in the constraint field, which the driver passes on unchanged, and in the
-- hint, which is all that some libraries pass on. A name in the message may be of any length and is followed by text
-- that matters, so a long message loses its middle.
create or replace function sluice.refuse(p_code text, p_message text) returns void language plpgsql as $$
begin
  if length(p_message) > 1000 then p_message := left(p_message, 300) || '…' || right(p_message, 300); end if;
  raise exception using errcode = 'SLUIC', message = p_message, constraint = p_code, hint = p_code;
end $$;
