-- Returns whether a worker is on call. Volatile, so that the statement that registers a worker can call it too.
create or replace function sluice.is_on_call(p_worker bigint) returns boolean language plpgsql volatile as $$
begin
  return exists (select from sluice.worker w where w.id = p_worker and w.on_call_since is not null);
end $$;
