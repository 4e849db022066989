-- Counts the live workers that serve exactly these streams: those on call, and those that sleep in reserve. A hint,
-- read without locks.
create or replace function sluice.crew_of(p_streams int[], out on_call int, out reserve int)
language plpgsql stable as $$
begin
  select count(*) filter (where w.on_call_since is not null),
    count(*) filter (where w.on_call_since is null and w.asleep)
  into on_call, reserve
  from sluice.worker w
  where w.streams = p_streams and w.expires_at > sluice.clock() and not w.draining;
end $$;
