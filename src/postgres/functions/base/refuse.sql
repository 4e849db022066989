-- Errors carry their code in the constraint field, where the driver hands it to us untouched, and in
-- the hint, which is all that some libraries pass on. A name in the message may be of any length, and what matters may
-- stand behind it: the middle is cut out.
create or replace function sluice.refuse(p_code text, p_message text) returns void language plpgsql as $$
begin
  if length(p_message) > 1000 then p_message := left(p_message, 300) || '…' || right(p_message, 300); end if;
  raise exception using errcode = 'SLUIC', message = p_message, constraint = p_code, hint = p_code;
end $$;
