-- Returns whether a live worker serves this stream, and the stream is not paused. p_free: only a worker that could take
-- one more task at its last heartbeat. Without it a busy worker counts too: it replaces tasks that end.
create or replace function sluice.has_taker(p_stream int, p_free boolean) returns boolean language plpgsql stable as $$
begin
  return exists (select from sluice.stream s where s.id = p_stream and not s.paused)
    and exists (
      select from sluice.worker w
      where w.streams @> array[p_stream]
        and not w.draining
        and w.expires_at > sluice.clock()
        and (not p_free or w.capacity_available > 0 and w.pressure <> 'stopped'));
end $$;
