-- Deletes attempts whose tasks are gone, among p_max rows from a random id on. So the cost is bounded, and every row is
-- reached in time.
create or replace function sluice.prune_attempts(p_max int) returns void
language plpgsql /* settings: index plans */ as $$
declare
  v_first bigint := (select min(id) from sluice.attempt);
  v_last bigint := (select max(id) from sluice.attempt);
begin
  if v_first is null then return; end if;
  -- From the first one half of the time: if all fit into one piece, all are examined then.
  if random() < 0.5 then v_first := v_first + (random() * (v_last - v_first))::bigint; end if;
  delete from sluice.attempt where ctid = any (array(
    select a.tid
    from (select ctid as tid, id from sluice.attempt where id >= v_first order by id limit p_max) a
    where not exists (select from sluice.task t where t.id = a.id)));
end $$;
