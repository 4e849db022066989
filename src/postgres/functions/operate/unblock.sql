-- Frees an order key that a failed task blocks, without running the task again. Returns false if it blocks none.
create or replace function sluice.unblock(p_id bigint) returns boolean language plpgsql as $$
begin
  with gone as (
    delete from sluice.block where id = p_id returning lane
  )
  insert into sluice.dirty (lane, limit_id, freed) select lane, 0, 1 from gone;
  if not found then return false; end if;
  perform sluice.ring(array[stream], 1) from sluice.task where id = p_id;
  return true;
end $$;
