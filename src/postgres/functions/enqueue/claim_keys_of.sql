-- Takes idempotency keys under a name: a task type, or a workflow (see workflow_start). p_ids: the task or run of
-- each key. p_keys: '' for none. p_ms: how long a new key is kept. ids, fresh: as in claim_keys. Refuses a key that
-- was used with another input.
create or replace function sluice.claim_keys_of(
  p_type text, p_ids bigint[], p_keys text[], p_inputs json[], p_ms bigint,
  out ids bigint[], out fresh boolean[])
language plpgsql as $$
declare
  v_type text := p_type;
  v_now timestamptz := sluice.clock();
  v_until timestamptz := v_now + p_ms * interval '1 millisecond';
  v_key text;
  v_id bigint;
begin
  if cardinality(p_keys) <> cardinality(p_ids) then
    perform sluice.refuse('invalid_key', 'every task needs its own idempotency key');
  end if;
  -- Most keys are new, and nothing is read for them: otherwise two SERIALIZABLE transactions, each with keys of its
  -- own, would have read what the other wrote, and one of them would fail.
  -- guard: new keys are not read -> test/postgres/attacks.test.ts: "serializable transactions with new idempotency keys do not conflict"
  if sluice.take_keys(v_type, p_ids, p_keys, p_inputs, v_until)
      /* guard:new-keys */ = cardinality(array_remove(p_keys, '')) /* end */ then
    ids := p_ids;
    fresh := array_fill(true, array[cardinality(p_ids)]);
    return;
  end if;
  -- In the order in which keys are taken, so that two of these cannot deadlock.
  delete from sluice.idempotency where ctid = any (array(
    select i.ctid from sluice.idempotency i
    where i.type = v_type and i.key = any (p_keys) and i.expires_at <= v_now
    order by i.key
    for update));
  if found then perform sluice.take_keys(v_type, p_ids, p_keys, p_inputs, v_until); end if;
  select i.key, i.id into v_key, v_id
  from unnest(p_keys, p_inputs) u(key, input)
  join sluice.idempotency i on i.type = v_type and i.key = u.key
  where u.key <> '' and i.digest <> md5(u.input::jsonb::text)
  limit 1;
  if found then
    -- A workflow takes keys under a name that no task can have: see workflow_start.
    perform sluice.refuse('idempotency_conflict', case
      when v_type like E'\x1fworkflow\x1f%' then format(
        'idempotency key %L of workflow %L was already used with another input, by run %s',
        v_key, split_part(v_type, E'\x1f', 3), v_id)
      else format(
        'idempotency key %L of %L was already used with another input, by task %s', v_key, v_type, v_id)
      end);
  end if;
  select array_agg(coalesce(i.id, u.id) order by u.n), array_agg(i.id is null or i.id = u.id order by u.n)
  into ids, fresh
  from unnest(p_ids, p_keys) with ordinality u(id, key, n)
  left join sluice.idempotency i on u.key <> '' and i.type = v_type and i.key = u.key;
end $$;
