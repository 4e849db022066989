-- Whether a live worker serves this stream. p_free: one that can take one more task, as of its last heartbeat; a busy
-- one replaces what ends all the same.
create or replace function sluice.has_taker(p_stream int, p_free boolean) returns boolean language plpgsql stable as $$
begin
  return exists (select from sluice.stream s where s.id = p_stream and not s.paused)
    and exists (select from sluice.worker w where w.streams @> array[p_stream] and not w.draining
      and w.expires_at > sluice.clock() and (not p_free or w.capacity_available > 0 and w.pressure <> 'stopped'));
end $$;
