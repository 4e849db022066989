-- Describes a task that holds a slot. p_deep: if it does not run, also say why.
create or replace function sluice.explain_holder(
  p_id bigint, p_state text, p_since timestamptz, p_worker bigint, p_deep boolean)
returns json language plpgsql stable as $$
begin
  return (
    select json_build_object(
      'task', p_id::text, 'type', s.type, 'queue', s.queue, 'state', p_state, 'since', p_since,
      'worker', (select w.name from sluice.worker w where w.id = p_worker),
      'reason', case when p_deep and p_state not in ('running', 'failed')
        then sluice.explain(p_id, false) -> 'reasons' -> 0 end)
    from sluice.task t
    join sluice.stream s on s.id = t.stream
    where t.id = p_id);
end $$;
