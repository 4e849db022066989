-- Refuses keys that do not fit the limits. It has a result so that an expression can call it (insert_laned).
create or replace function sluice.refuse_keys() returns json language plpgsql as $$
begin
  perform sluice.refuse('key_missing',
    'every limit per key needs exactly one non-empty key, and every key must be different');
end $$;
