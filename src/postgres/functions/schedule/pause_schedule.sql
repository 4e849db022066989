-- Pauses a schedule. Once this returns, nothing more is enqueued for it: a keeper that had the row locked has
-- committed, and one that had only read it finds another revision. Returns false if there is no such schedule.
create or replace function sluice.pause_schedule(p_name text) returns boolean language plpgsql as $$
begin
  update sluice.schedule set paused = true, next_at = null, due_at = null, trouble = null, revision = default
  where name = p_name;
  return found;
end $$;
