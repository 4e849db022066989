-- False when it has changed since it was seen: look again.
create or replace function sluice.resume_schedule(p_name text, p_seen bigint, p_next_at timestamptz) returns boolean language plpgsql as $$
begin
  update sluice.schedule set paused = false, next_at = case when enabled then p_next_at end, due_at = case when enabled then p_next_at end, revision = default
  where name = p_name and revision = p_seen;
  if not found then return false; end if;
  perform sluice.look_by(p_next_at);
  return true;
end $$;
