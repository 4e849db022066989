-- A worker leaves. What it still holds goes back unharmed: it was not a crash.
create or replace function sluice.retire(p_worker bigint) returns int language plpgsql as $$
declare v_n int := sluice.release_unknown(p_worker, '{}');
begin
  perform sluice.release_suspect(p_worker);
  delete from sluice.worker where id = p_worker;
  return v_n;
end $$;
