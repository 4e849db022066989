-- Unregisters a worker. The tasks it still holds go back without counting a crash. Returns how many.
create or replace function sluice.retire(p_worker bigint) returns int language plpgsql as $$
declare
  v_n int := sluice.release_unknown(p_worker, '{}');
begin
  perform sluice.release_suspect(p_worker);
  delete from sluice.worker where id = p_worker;
  return v_n;
end $$;
