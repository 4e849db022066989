-- Resumes a paused schedule. Returns false if it has changed since revision p_seen was read: read it again.
create or replace function sluice.resume_schedule(p_name text, p_seen bigint, p_next_at timestamptz) returns boolean
language plpgsql as $$
begin
  update sluice.schedule set
    paused = false,
    next_at = case when enabled then p_next_at end,
    due_at = case when enabled then p_next_at end,
    revision = default
  where name = p_name and revision = p_seen;
  if not found then return false; end if;
  perform sluice.poll_by(p_next_at);
  return true;
end $$;
