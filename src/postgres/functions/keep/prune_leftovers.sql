-- Deletes attempts and progress whose tasks are gone, among p_max rows of each from a random id on. So the cost is
-- bounded, and every row is reached in time.
create or replace function sluice.prune_leftovers(p_max int) returns void
language plpgsql /* settings: index plans */ as $$
declare
  v_first bigint;
  -- From the first one half of the time: if all fit into one piece, all are examined then.
  v_share double precision := case when random() < 0.5 then 0 else random() end;
begin
  v_first := (select min(id) + (v_share * (max(id) - min(id)))::bigint from sluice.attempt);
  if v_first is not null then
    delete from sluice.attempt where ctid = any (array(
      select a.tid
      from (select ctid as tid, id from sluice.attempt where id >= v_first order by id limit p_max) a
      where not exists (select from sluice.task t where t.id = a.id)));
  end if;
  v_first := (select min(id) + (v_share * (max(id) - min(id)))::bigint from sluice.progress);
  if v_first is not null then
    delete from sluice.progress where ctid = any (array(
      select p.tid
      from (select ctid as tid, id from sluice.progress where id >= v_first order by id limit p_max) p
      where not exists (select from sluice.task t where t.id = p.id)));
  end if;
end $$;
