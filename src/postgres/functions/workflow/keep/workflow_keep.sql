-- Keep: what must happen without anyone asking, and how long runs are kept.

-- What must happen without anyone asking: notes, timers, halts, tasks that are to run again. Any process may
-- call it at any time; each takes what no other has in hand. next_ms: until the next timer, null if there is none.
-- p_after: the run up to which a walk over those of which tasks are to run again has come, 0 to begin; after: where to go on.
create or replace function sluice.workflow_keep(p_max int, p_after bigint default 0, out moved int, out next_ms bigint, out unplaced boolean, out after bigint)
language plpgsql set lock_timeout = '2s' /* settings: index plans */ as $$
declare v_now timestamptz := sluice.clock(); v record; v_runs bigint[]; v_heard bigint[]; v_nodes smallint[]; v_run bigint; v_left int := p_max; v_from bigint; v_look bigint[];
begin
  moved := 0; unplaced := false; after := 0;
  if not exists (select from sluice.workflow_active) then return; end if;
  perform sluice.barrier_shared();
  if exists (select from sluice.workflow_note) then
    select * into v from sluice.workflow_notes(p_max);
    moved := moved + v.taken;
    if v.made > 0 and exists (select from sluice.worker where asleep) then perform sluice.ring(v.streams, v.made); end if;
  end if;
  -- A run's row first, then its timers: whoever holds the run may delete them.
  if exists (select from sluice.workflow_timer where due_at <= v_now) then
    v_runs := array(select r.id from sluice.workflow_run r where r.id = any (array(select t.run from sluice.workflow_timer t where t.due_at <= v_now order by t.due_at limit p_max))
      order by r.id for no key update skip locked);
    -- An event that was sent in time wins, wherever its note stands in the line.
    -- guard: an event in time beats its timeout -> test/postgres/workflow/wait.test.ts: "an event that was sent in time wins over its timeout, however many notes stand before it"
    v_heard := array(select t from unnest(v_runs) t where exists (select from sluice.workflow_event e where e.run = t));
    if /* guard:in-time */ v_heard <> '{}' /* end */ then
      select * into v from sluice.workflow_heard(v_heard);
      moved := moved + v.made;
      if v.made > 0 and exists (select from sluice.worker where asleep) then perform sluice.ring(v.streams, v.made); end if;
    end if;
    with rung as (
      delete from sluice.workflow_timer t where t.run = any (v_runs) and t.due_at <= v_now returning t.run, t.node
    ), over as (
      update sluice.workflow_node n set state = case when n.kind = 's' then 's' else 'f' end::"char", finished_at = v_now,
        outcome = case when n.kind = 'v' then sluice.workflow_error('timeout', 'the event did not come in time') end
      from rung where n.run = rung.run and n.node = rung.node and n.state = 'r' returning n.run, n.node
    )
    select array_agg(run), array_agg(node) into v_runs, v_nodes from over;
    if v_runs is not null then
      select * into v from sluice.workflow_cascade(v_runs, v_nodes);
      moved := moved + cardinality(v_runs);
      if v.made > 0 and exists (select from sluice.worker where asleep) then perform sluice.ring(v.streams, v.made); end if;
    end if;
  end if;
  -- First those that have tasks nobody has looked at; else by lot, so that none is left out for ever.
  for v_run in select h.run from sluice.workflow_halt h group by h.run order by bool_and(h.item is null), random() limit 32 loop
    perform from sluice.workflow_run where id = v_run for no key update skip locked;
    if found then v_left := v_left - sluice.workflow_halt_run(v_run, v_left); end if;
    exit when v_left <= 0;
  end loop;
  moved := moved + p_max - v_left;
  -- Asked to stop at the moment in which they went to sleep: nobody has told them.
  for v in select s.id, min(s.reason) as reason from sluice.stop s cross join lateral (select p.id from sluice.parent p where p.id = s.id limit 1) p group by s.id limit p_max loop
    moved := moved + (select count(*) from sluice.cancel(array[v.id], v.reason) c where c.answer = 'cancelled');
  end loop;
  -- Last: it locks lanes, of all these runs by id, and nothing is waited for after that. A walk: those that cannot come
  -- back yet, however many, stand in nobody's way.
  v_from := case when exists (select from sluice.workflow_again a where a.run > p_after) then p_after else 0 end;
  v_look := array(select a.run from sluice.workflow_again a where a.run > v_from order by a.run, a.node limit 100);
  if v_look <> '{}' then
    v_runs := array(select r.id from sluice.workflow_run r where r.id = any (v_look) and not r.paused order by r.id for no key update skip locked);
    -- guard: lanes of several runs by id -> test/postgres/workflow/again.test.ts: "a keeper that brings back several runs locks their windows in the order of all"
    perform from sluice.lane l where l.id = any (array(select n.lane from sluice.workflow_again x join sluice.workflow_node n on n.run = x.run and n.node = x.node
      where /* guard:order */ x.run = any (v_runs) and x.item = -1 /* end */ and n.lane is not null)) order by l.id for update;
    after := coalesce(v_look[100], 0); v_left := p_max;
    foreach v_run in array v_runs loop
      v_left := v_left - sluice.workflow_again_run(v_run, v_left);
      if v_left <= 0 then after := v_run; exit; end if;
    end loop;
    moved := moved + p_max - v_left;
    -- Some came back, and there are runs that nobody has looked at in this round: at once.
    if v_left < p_max and (after > 0 or v_from > 0) then moved := greatest(moved, p_max); end if;
  end if;
  next_ms := (select greatest(0, ceil(extract(epoch from due_at - v_now) * 1000)) from sluice.workflow_timer where due_at > v_now order by due_at limit 1);
  unplaced := exists (select from sluice.workflow_unplaced);
end $$;
