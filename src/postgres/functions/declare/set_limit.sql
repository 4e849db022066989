-- Sets the operator's numbers of a limit. They hold for all tasks from the moment this returns, through every deploy.
-- For each part null leaves it alone, -1 drops the override and no_limit() lifts the limit. Takes the barrier
-- exclusively.
create or replace function sluice.set_limit(p_name text, p_total int, p_per_key int) returns void language plpgsql as $$
declare
  v sluice.limits;
begin
  perform sluice.barrier_exclusive();
  select * into v from sluice.limits where name = p_name;
  if not found then perform sluice.refuse('unknown_limit', format('there is no limit named %L', p_name)); end if;
  if (p_total is not null and v.total_declared is null) or (p_per_key is not null and v.per_key_declared is null) then
    perform sluice.refuse('limit_shape', format('limit %L was declared without %s, so it cannot be set',
      p_name, case when v.total_declared is null then 'total' else 'perKey' end));
  end if;
  update sluice.limits set
    total_override = case when p_total is null then total_override when p_total < 0 then null else p_total end,
    per_key_override = case when p_per_key is null then per_key_override when p_per_key < 0 then null else p_per_key end
  where id = v.id;
  perform sluice.apply_limit(v.id, coalesce(v.per_key_override, v.per_key_declared));
end $$;
