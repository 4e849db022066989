-- Ends the leadership of a keeper that shuts down. Another takes over at once.
create or replace function sluice.keep_leave(p_keeper bigint) returns void language plpgsql as $$
begin
  update sluice.keeper set until = '-infinity', next_at = '-infinity' where leader = p_keeper;
  if found then perform pg_notify('sluice', 'keep:all'); end if;
end $$;
