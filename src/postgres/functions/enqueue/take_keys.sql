-- Takes the keys that nobody has, in their order; of one that is given twice the first task gets it. Returns how many.
create or replace function sluice.take_keys(p_type text, p_ids bigint[], p_keys text[], p_inputs json[], p_until timestamptz) returns int language plpgsql as $$
declare v_n int;
begin
  insert into sluice.idempotency (type, key, id, digest, expires_at)
  select distinct on (u.key) p_type, u.key, u.id, md5(u.input::jsonb::text), p_until
  from unnest(p_ids, p_keys, p_inputs) u(id, key, input) where u.key <> '' order by u.key, u.id
  on conflict do nothing;
  get diagnostics v_n = row_count;
  return v_n;
end $$;
