-- A look at all that must happen without anyone asking: what there is to do now, and when to look again. p_keeper: the
-- caller, who becomes the leader if there is none. How long a look may be put off: p_quiet_ms if there is no work,
-- p_live_ms if there is, p_poll_ms while there is something that waits for the next look.
-- leads: the caller is the leader. live: tasks stand somewhere or run. dead: a lease has run out. due, ticks, runs:
-- scheduled tasks, schedules, workflow runs have something to do. flows: there are fan-outs of handlers. ended: there are
-- runs to prune some day. next_ms: when to look again. due_ms: when the next scheduled task is due, null if there is none.
create or replace function sluice.keep_look(p_keeper bigint, p_quiet_ms int, p_live_ms int, p_poll_ms int,
  out leads boolean, out live boolean, out dead boolean, out due boolean, out ticks boolean, out runs boolean,
  out flows boolean, out ended boolean, out next_ms float8, out due_ms float8)
language plpgsql /* settings: index plans */ as $$
declare
  v_now timestamptz := sluice.clock(); k sluice.keeper; v_waits boolean; v_next timestamptz; v_due timestamptz;
  v_expires timestamptz; v_tick timestamptz; v_timer timestamptz;
begin
  select * into k from sluice.keeper;
  if not found then
    insert into sluice.keeper default values on conflict do nothing;
    select * into k from sluice.keeper;
  end if;
  -- No leader says more than a few seconds: the clock was set back.
  leads := k.leader = p_keeper or k.until <= v_now or k.until > v_now + interval '10 seconds';
  select exists (select from sluice.worker w where w.expires_at <= v_now),
    (select min(w.expires_at) from sluice.worker w where w.expires_at > v_now),
    exists (select from sluice.scheduled s where s.run_at <= v_now),
    (select s.run_at from sluice.scheduled s where s.run_at > v_now order by s.run_at limit 1),
    exists (select from sluice.ready) or exists (select from sluice.gated) or exists (select from sluice.waiting)
      or exists (select from sluice.running) or exists (select from sluice.dirty) or exists (select from sluice.parked)
      or exists (select from sluice.suspect) or exists (select from sluice.lowered) or exists (select from sluice.changed)
  into dead, v_expires, due, v_due, live;
  if leads then
    select exists (select from sluice.schedule s where s.due_at <= v_now),
      (select s.due_at from sluice.schedule s where s.due_at > v_now order by s.due_at limit 1),
      exists (select from sluice.workflow_timer t where t.due_at <= v_now),
      (select t.due_at from sluice.workflow_timer t where t.due_at > v_now order by t.due_at limit 1),
      exists (select from sluice.workflow_note) or exists (select from sluice.workflow_halt)
        or exists (select from sluice.workflow_again),
      exists (select from sluice.parent) or exists (select from sluice.workflow_orphan)
        or exists (select from sluice.workflow_lead) or exists (
          select from sluice.workflow_run r where r.parent is not null and r.finished_at is null and not r.stopping),
      exists (select from sluice.workflow_run r where r.parent is null and r.finished_at is not null)
        or exists (select from sluice.workflow_run r where r.parent is not null and r.finished_at is not null)
    into ticks, v_tick, runs, v_timer, v_waits, flows, ended;
    runs := runs or v_waits or exists (select from sluice.workflow_unplaced)
      or flows and exists (select from sluice.stop s join sluice.parent p on p.id = s.id);
    v_next := v_now + case when due or v_waits then p_poll_ms when live or runs or flows then p_live_ms else p_quiet_ms end
      * interval '1 millisecond';
    v_next := least(v_next, v_due, v_tick, v_timer);
    -- guard: a promised look is not put off -> test/postgres/keeper.test.ts: "a look that comes early does not put off the look that was promised"
    if k.leader = p_keeper and k.next_at > v_now + interval '5 milliseconds' then v_next := /* guard:promise */ least(v_next, k.next_at) /* end */; end if;
    -- Of several who find no leader the first becomes it: the others wait for the row and find it taken.
    update sluice.keeper x set leader = p_keeper, next_at = v_next, until = v_next + interval '1 second'
    where x.leader = p_keeper or x.until <= v_now or x.until > v_now + interval '10 seconds';
    leads := found;
  elsif live and k.next_at > v_now + 1.5 * p_live_ms * interval '1 millisecond' then
    -- The leader saw no work, and there is some now.
    perform sluice.look_by(v_now);
  end if;
  if not leads then
    ticks := false; runs := false; flows := false; ended := false;
    v_next := v_now + p_quiet_ms * interval '1 millisecond';
  end if;
  -- A lease that ends is looked at by all of them: no leader is needed to recover what its worker held.
  next_ms := greatest(0, ceil(extract(epoch from least(v_next, v_expires) - v_now) * 1000));
  due_ms := ceil(extract(epoch from v_due - v_now) * 1000);
end $$;
