-- Takes the idempotency keys that are free, in their order, and returns how many. A key that is given twice belongs to
-- the first task. Waits for an open transaction that has taken the same key.
create or replace function sluice.take_keys(
  p_type text, p_ids bigint[], p_keys text[], p_inputs json[], p_until timestamptz)
returns int language plpgsql as $$
declare
  v_n int;
begin
  insert into sluice.idempotency (type, key, id, digest, expires_at)
  select distinct on (u.key) p_type, u.key, u.id, md5(u.input::jsonb::text), p_until
  from unnest(p_ids, p_keys, p_inputs) u(id, key, input)
  where u.key <> ''
  order by u.key, u.id
  on conflict do nothing;
  get diagnostics v_n = row_count;
  return v_n;
end $$;
