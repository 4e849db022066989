-- Takes one node in these streams whose tasks only code can place and that no other transaction holds. The caller keeps
-- its row locked until all is placed (workflow_place, then workflow_placed) or rolls back. Streams come in random
-- order, so that none waits behind a long queue of another; within a stream the oldest, now and then one that was put
-- off, so that none waits for ever.
--
-- Returns the node and how its tasks are made; again: it found a node that is not wanted any more. A transaction that
-- inserts that node anew waits for our delete, so the caller ends its transaction before it takes again.
create or replace function sluice.workflow_take(
  p_streams int[],
  out run bigint, out node smallint, out stream int, out total int, out priority int, out attempts int,
  out again boolean
) language plpgsql /* settings: index plans */ as $$
declare v_stream int; v_since timestamptz; v_tries int; v_now timestamptz := sluice.clock();
begin
  again := false;
  perform sluice.workflow_limit_idle();
  for v_stream, v_since in
    select s, x.since
    from unnest(p_streams) s
    cross join lateral (values (timestamptz '-infinity'), (timestamptz 'epoch')) x(since)
    order by random()
  loop
    select u.run, u.node, u.stream, u.tries into run, node, stream, v_tries
    from sluice.workflow_unplaced u
    where u.in_code and u.stream = v_stream and u.due_at between v_since and v_now
    order by u.due_at, u.run, u.node limit 1 for update skip locked;
    exit when found;
  end loop;
  if run is null then
    return;
  end if;
  select n.total, -s.rank, s.attempts into total, priority, attempts
  from sluice.workflow_run r
  join sluice.workflow_node n on n.run = r.id
  join sluice.workflow_step s on s.graph = r.graph and s.node = n.node
  where r.id = workflow_take.run and n.node = workflow_take.node and n.state = 'placing';
  if not found then
    -- Cancelled or paused while another transaction held it, which found that out and rolled back.
    perform sluice.workflow_stale(run, node);
  -- guard: the code of a node that kills its process is counted -> test/postgres/workflow/place.test.ts: "a node whose code kills the process is counted each time, and fails after ten"
  elsif /* guard:died */ exists (select from sluice.workflow_trying) /* end */
    and sluice.workflow_placer_died(run, node) then
    null;
  elsif v_tries >= 10 then
    perform sluice.workflow_misplaced(run, node, sluice.workflow_error('poisoned', format(
      'its tasks could not be created in %s tries: '
      'in the last try the process died while it validated an input or computed a key of this node', v_tries)));
  else
    return;
  end if;
  run := null;
  again := true;
end $$;
