-- Deletes sets that contain one of these totals. The caller holds the advisory locks of these groups, so no transaction
-- is using one of them.
create or replace function sluice.drop_sets(p_totals int[]) returns void language plpgsql set enable_seqscan = off as $$
begin
  with unused as (
    delete from sluice.gate_set s
    where s.id in (select m.gate from sluice.gate_member m where m.total = any (p_totals))
    returning s.id, s.gates
  )
  delete from sluice.gate_member m using unused u where m.gate = u.id and m.total = any (u.gates);
end $$;
