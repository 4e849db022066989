-- Finds out what the keeper has to do now and when to look again. p_keeper: the caller, which becomes the leader if
-- there is none. How long the next look may be put off: p_quiet_ms if there is no work, p_live_ms if there is,
-- p_poll_ms while something waits for the next look. Locks the row of keeper, last and briefly.
-- leads: the caller is the leader. live: tasks wait or run somewhere. dead: a lease has run out. due: scheduled tasks
-- are due. ticks, runs, maps, ended: as in keep_leader, for the leader only. next_ms: when to look again. due_ms: when
-- the next scheduled task is due, null if there is none.
create or replace function sluice.keeper_poll(
  p_keeper bigint, p_quiet_ms int, p_live_ms int, p_poll_ms int,
  out leads boolean, out live boolean, out dead boolean, out due boolean, out ticks boolean, out runs boolean,
  out maps boolean, out ended boolean, out next_ms float8, out due_ms float8)
language plpgsql /* settings: index plans */ as $$
declare
  v_now timestamptz := sluice.clock();
  k sluice.keeper;
  v record;
  v_next timestamptz;
  v_due timestamptz;
  v_expires timestamptz;
begin
  select * into k from sluice.keeper;
  if not found then
    insert into sluice.keeper default values on conflict do nothing;
    select * into k from sluice.keeper;
  end if;
  -- No leader writes a time more than a few seconds ahead: then the clock was set back.
  leads := k.leader = p_keeper or k.until <= v_now or k.until > v_now + interval '10 seconds';
  select exists (select from sluice.worker w where w.expires_at <= v_now),
    (select min(w.expires_at) from sluice.worker w where w.expires_at > v_now),
    exists (select from sluice.scheduled s where s.run_at <= v_now),
    (select s.run_at from sluice.scheduled s where s.run_at > v_now order by s.run_at limit 1),
    exists (select from sluice.ready) or exists (select from sluice.gated) or exists (select from sluice.waiting)
      or exists (select from sluice.running) or exists (select from sluice.dirty)
      or exists (select from sluice.parked) or exists (select from sluice.suspect)
      or exists (select from sluice.lowered) or exists (select from sluice.changed)
  into dead, v_expires, due, v_due, live;
  if leads then
    select * into v from sluice.keep_leader(v_now);
    ticks := v.ticks;
    runs := v.runs;
    maps := v.maps;
    ended := v.ended;
    v_next := v_now + interval '1 millisecond'
      * case when due or v.waits then p_poll_ms when live or runs or maps then p_live_ms else p_quiet_ms end;
    v_next := least(v_next, v_due, v.next_at);
    -- guard: a promised look is not put off -> test/postgres/keeper.test.ts: "an early check does not postpone the check that the leader has promised"
    if k.leader = p_keeper and k.next_at > v_now + interval '5 milliseconds' then
      v_next := /* guard:promise */ least(v_next, k.next_at) /* end */;
    end if;
    -- Of several keepers that find no leader the first takes over: the others wait for the row and find it taken.
    update sluice.keeper x set leader = p_keeper, next_at = v_next, until = v_next + interval '1 second'
    where x.leader = p_keeper or x.until <= v_now or x.until > v_now + interval '10 seconds';
    leads := found;
  elsif live and k.next_at > v_now + 1.5 * p_live_ms * interval '1 millisecond' then
    -- The leader saw no work, and there is some now.
    perform sluice.poll_by(v_now);
  end if;
  if not leads then
    ticks := false;
    runs := false;
    maps := false;
    ended := false;
    v_next := v_now + p_quiet_ms * interval '1 millisecond';
  end if;
  -- All keepers look when a lease ends: no leader is needed to recover the tasks of a dead worker.
  next_ms := greatest(0, ceil(extract(epoch from least(v_next, v_expires) - v_now) * 1000));
  due_ms := ceil(extract(epoch from v_due - v_now) * 1000);
end $$;
