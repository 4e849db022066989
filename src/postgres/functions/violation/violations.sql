-- What must never be: slots and holders that differ, a lane or gate above its capacity although its
-- number was never lowered below, a waiter nobody will wake, a task in two states or in none. Of runs: more running
-- than a window lets through, counts that differ from tasks, a run that stands still, one that is over too early.
-- A function, because a view cannot say that compiling it would take a hundred times as long as running it.
create or replace function sluice.violations() returns table (what text, id bigint, used bigint, cap bigint, held bigint) language sql stable set jit = off as $$
  with holder as (
    select lane, count(*) as n from (
      select lanes as l from sluice.ready union all select lanes from sluice.gated union all select lanes from sluice.running union all select lanes from sluice.suspect
      union all select lanes[1:held] from sluice.waiting union all select array[lane] from sluice.block
      union all select t.lanes[1:s.held] from sluice.scheduled s join sluice.task t using (id) where s.held > 0
      union all select t.lanes[1:p.held] from sluice.parked p join sluice.task t using (id) where p.held > 0
      union all select t.lanes[1:p.held] from sluice.parent p join sluice.task t using (id) where p.held > 0
    ) x, unnest(x.l) lane group by lane
  ), freed as (
    select lane, sum(dirty.freed) as n from sluice.dirty where dirty.freed > 0 group by lane
  ), expected as (
    select coalesce(h.lane, f.lane) as lane, coalesce(h.n, 0) + coalesce(f.n, 0) as n from holder h full join freed f on f.lane = h.lane
  ), place as (
    select id from sluice.ready union all select id from sluice.gated union all select id from sluice.waiting union all select id from sluice.scheduled
    union all select id from sluice.parked union all select id from sluice.parent union all select id from sluice.suspect union all select id from sluice.running union all select id from sluice.done
  )
  select 'slots differ from holders' as what, coalesce(l.id, e.lane) as id, l.used::bigint as used, sluice.cap_of(l.cap, l.limit_id)::bigint as cap, coalesce(e.n, 0)::bigint as held
    from sluice.lane l full join expected e on e.lane = l.id where coalesce(l.used, 0) <> coalesce(e.n, 0)
  union all select 'order key held twice', l.id, l.used, l.cap, null from sluice.lane l where l.id >> 60 = 1 and l.used > 1
  union all select 'waiter without a waker', w.lane, l.used, l.cap, null from (select distinct lane from sluice.waiting) w left join sluice.lane l on l.id = w.lane
    where (l.id is null or l.used < case when w.lane >> 60 = 2 then sluice.lane_cap(w.lane, -2) else sluice.cap_of(l.cap, l.limit_id) end) and not exists (select from sluice.dirty d where d.lane = w.lane)
      and not exists (select from sluice.postponed p where p.lane = w.lane) and not exists (select from sluice.changed c where c.limit_id = l.limit_id and c.after < l.id)
  union all select 'gate differs from holders', g.id, g.used, g.cap, r.n from sluice.gate g cross join lateral (
    select (select count(*) from sluice.running where g.id = any (sluice.gates_of(running.gate) || stream_gate)) + coalesce((select sum(n) from sluice.credit c where c.gate = g.id), 0) as n) r where g.used <> r.n
  union all select 'task in two states', id, null, null, count(*) from place group by id having count(*) > 1
  union all select 'task in no state', t.id, null, null, 0 from sluice.task t where not exists (select from place p where p.id = t.id)
  union all select 'a run above its window', n.run, x.running, n.window_size, n.node from sluice.workflow_node n
    cross join lateral (select count(*) as running from sluice.workflow_task w join sluice.running r on r.id = w.id where w.run = n.run and w.node = n.node) x
    where n.window_size is not null and n.state = 'r' and x.running > n.window_size and not exists (select from sluice.lowered where limit_id = -2)
  union all select 'a node''s counts differ from its tasks', n.run, n.succeeded + n.failed + n.cancelled, n.total, x.over from sluice.workflow_node n
    join sluice.workflow_run r on r.id = n.run and not r.pruning
    -- Those that a retry has not brought back yet are over, and not counted.
    left join sluice.workflow_again a on a.run = n.run and a.node = n.node
    cross join lateral (select count(*) as tasks, count(d.id) filter (where not exists (select from sluice.workflow_note k where k.id = w.id)) as over,
        count(d.id) filter (where d.state = 's' and not exists (select from sluice.workflow_note k where k.id = w.id)) as good
      from sluice.workflow_task w left join sluice.done d on d.id = w.id where w.run = n.run and w.node = n.node) x
    where n.kind in ('t', 'e') and n.state not in ('p', 'h', 'u', 'k', 'x')
      and (x.tasks <> n.total and n.total > 0 and n.state <> 'c' or n.total > 0 and x.tasks > 0 and (x.over <> n.succeeded + n.failed + n.cancelled + coalesce(a.failed + a.cancelled, 0) or x.good <> n.succeeded))
  union all select 'a run that nothing moves', r.id, r.open, null, null from sluice.workflow_run r where r.finished_at is null and not exists (
    select from sluice.workflow_node n where n.run = r.id and (n.state = 'h' or n.state = 'r' and n.kind = 'v' or n.state = 'r' and exists (select from sluice.workflow_timer t where t.run = n.run and t.node = n.node)
      or n.state = 'u' and exists (select from sluice.workflow_unplaced u where u.run = n.run and u.node = n.node) or n.state = 'r' and n.total > n.succeeded + n.failed + n.cancelled))
  union all select 'a run lives and no step looks for it', r.id, r.open, null, null from sluice.workflow_run r
    where r.finished_at is null and not exists (select from sluice.workflow_active)
  union all select 'a run''s open nodes differ', r.id, r.open, null, x.n from sluice.workflow_run r
    cross join lateral (select count(*) as n from sluice.workflow_node n where n.run = r.id and n.state in ('p', 'h', 'u', 'r')) x where x.n <> r.open
  union all select 'a run is over with tasks that are not', r.id, null, null, w.id from sluice.workflow_run r join sluice.workflow_task w on w.run = r.id
    where r.finished_at is not null and not exists (select from sluice.done d where d.id = w.id)
  union all select 'items are given up and nobody cancels them', n.run, null, null, w.id from sluice.workflow_node n join sluice.workflow_task w on w.run = n.run and w.node = n.node
    where n.failing and n.state = 'r' and not exists (select from sluice.workflow_halt h where h.run = n.run and h.node = n.node)
      and not exists (select from sluice.done d where d.id = w.id) and not exists (select from sluice.running x where x.id = w.id)
  union all select 'tasks are to come back to a node that does not run', a.run, null, null, a.node from sluice.workflow_again a
    where not exists (select from sluice.workflow_node n where n.run = a.run and n.node = a.node and n.state = 'r' and not n.failing)
  union all select 'a window is left without its node', l.id, l.used, l.cap, null from sluice.lane l where l.id >> 60 = 2 and not exists (select from sluice.dirty d where d.lane = l.id)
    and not exists (select from sluice.postponed p where p.lane = l.id)
    and not exists (select from sluice.workflow_node n where n.lane = l.id and n.state in ('u', 'r'))
  union all select 'a parent sleeps beside children that ended', p.id, null, null, r.id from sluice.parent p join sluice.workflow_run r on r.id = any (p.runs) where r.finished_at is not null
  union all select 'a parent sleeps without children', p.id, null, null, null from sluice.parent p where not exists (select from sluice.workflow_run r where r.id = any (p.runs))
$$;
