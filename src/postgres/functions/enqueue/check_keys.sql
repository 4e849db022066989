-- Refuses an enqueue from SQL whose keys do not fit the type: an order key or a key of a limit that is missing, not
-- wanted or malformed.
create or replace function sluice.check_keys(
  p_contract sluice.contract, p_order_key text, p_keys jsonb, p_idempotency_key text)
returns void language plpgsql as $$
declare
  v_type text := p_contract.type;
  v_name text;
  v_missing text;
  v_unknown text;
begin
  if p_contract.ordered and coalesce(p_order_key, '') = '' then
    perform sluice.refuse('key_missing', format('task type %L needs an order_key', v_type));
  end if;
  if not p_contract.ordered and p_order_key is not null then
    perform sluice.refuse('invalid_option', format('task type %L has no order, so it takes no order_key', v_type));
  end if;
  foreach v_name in array array_remove(
      array[p_order_key, p_idempotency_key] || array(select value from jsonb_each_text(p_keys)), null) loop
    if v_name ~ '[\u0001-\u001f\u007f-\u009f]' or length(v_name) not between 1 and 512 then
      perform sluice.refuse('invalid_key', 'a key must have 1 to 512 characters and no control characters');
    end if;
  end loop;
  select string_agg(l.name, ', ') into v_missing
  from unnest(p_contract.limit_ids) u(id)
  join sluice.limits l on l.id = u.id
  where l.per_key_declared is not null and coalesce(p_keys ->> l.name, '') = '';
  if v_missing is not null then
    perform sluice.refuse('key_missing', format('task type %L needs a key for limit %s', v_type, v_missing));
  end if;
  select string_agg(k, ', ') into v_unknown
  from jsonb_object_keys(p_keys) k
  where not exists (
    select from sluice.limits l
    where l.id = any (p_contract.limit_ids) and l.name = k and l.per_key_declared is not null);
  if v_unknown is not null then
    perform sluice.refuse('unknown_limit', format('task type %L has no limit per key named %s', v_type, v_unknown));
  end if;
end $$;
