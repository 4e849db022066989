-- The worker could not empty itself in time: let another try.
create or replace function sluice.release_suspect(p_worker bigint) returns void language plpgsql as $$
begin
  update sluice.suspect set reserved_by = null where reserved_by = p_worker;
end $$;
