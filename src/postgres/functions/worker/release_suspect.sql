-- Ends a worker's reservation of a suspect, because it could not empty itself in time: another worker may try.
create or replace function sluice.release_suspect(p_worker bigint) returns void language plpgsql as $$
begin
  update sluice.suspect set reserved_by = null where reserved_by = p_worker;
end $$;
