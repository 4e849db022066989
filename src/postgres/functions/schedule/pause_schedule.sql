-- When this returns, nothing is enqueued for the schedule any more: a keeper that had the row in hand
-- has committed, and one that had only seen it finds another revision. False if there is none.
create or replace function sluice.pause_schedule(p_name text) returns boolean language plpgsql as $$
begin
  update sluice.schedule set paused = true, next_at = null, due_at = null, trouble = null, revision = default where name = p_name;
  return found;
end $$;
