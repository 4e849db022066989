-- Declarations of a deploy: limits, contracts, streams. Numbers are inserted when absent and changed only by a sync, so
-- a worker of an older deploy cannot restore an old number during a rolling update.

-- Declares a limit and returns its id. p_transient: an enqueue needs it, so it is forgotten when it has been unused for
-- long. p_sync: change its numbers, which takes the barrier exclusively.
create or replace function sluice.declare_limit(
  p_name text, p_total int, p_per_key int, p_sync boolean default false, p_transient boolean default false)
returns int language plpgsql as $$
declare
  v sluice.limits;
begin
  select * into v from sluice.limits where name = p_name;
  -- guard: a declared limit counts as used -> test/postgres/forget.test.ts: "a group that is declared again is not forgotten"
  if /* guard:used */ v.unused_since is not null /* end */ then
    -- Waits for a forget_limits that has the row locked, and then finds it gone.
    update sluice.limits set unused_since = null where id = v.id returning * into v;
  end if;
  if v.id is null then
    insert into sluice.limits (name, total_declared, per_key_declared, transient)
    values (p_name, p_total, p_per_key, p_transient)
    on conflict (name) do nothing;
    select * into v from sluice.limits where name = p_name;
  end if;
  if (p_total is not null and v.total_declared is null) or (p_per_key is not null and v.per_key_declared is null) then
    perform sluice.refuse('limit_shape', format(
      'limit %L already exists without %s, and enqueued tasks have no slots for it: use another name',
      p_name, case when v.total_declared is null then 'total' else 'perKey' end));
  end if;
  if v.total_declared is not null and not exists (select from sluice.gate where id = v.id) then
    perform sluice.make_gate(v.id);
  end if;
  if p_sync and (p_total, p_per_key) is distinct from (v.total_declared, v.per_key_declared) then
    perform sluice.barrier_exclusive();
    update sluice.limits set
      total_declared = coalesce(p_total, total_declared),
      per_key_declared = coalesce(p_per_key, per_key_declared)
    where id = v.id;
    perform sluice.apply_limit(v.id, coalesce(v.per_key_override, v.per_key_declared));
  end if;
  return v.id;
end $$;
