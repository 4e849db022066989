-- Brings the gate of a limit in line with the number in force. p_was: the number per key before; if it has changed, the
-- lanes are examined. Needs the exclusive barrier, so that nothing is being admitted or claimed meanwhile. A lane has
-- no copy of its limit's number, so the work does not grow with the keys in use: the first lanes are examined here, the
-- keeper goes on with the others.
create or replace function sluice.apply_limit(p_limit int, p_was int default null) returns void language plpgsql as $$
declare
  v_per_key int := sluice.cap_of(null, p_limit);
begin
  update sluice.gate g set
    cap = coalesce(l.total_override, l.total_declared),
    full_at = least(sluice.full_until(g.id), sluice.clock())
  from sluice.limits l
  where l.id = p_limit and g.id = p_limit;
  if v_per_key < p_was then
    insert into sluice.lowered (limit_id) values (p_limit) on conflict (limit_id) do update set after = 0, turn = 0;
  end if;
  if v_per_key <> p_was then perform sluice.follow_change(p_limit); end if;
  perform sluice.note_returned(array[p_limit]);
  -- A raised number may let many tasks through, which no enqueue announces.
  perform sluice.ring(array(
    select s.id
    from sluice.stream s
    left join sluice.contract c on c.type = s.type
    where s.gate = p_limit or c.limit_ids is null or p_limit = any (c.limit_ids)), 50);
end $$;
