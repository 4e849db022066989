-- Look: the state of runs, their nodes and items, what they came to and why they failed.

create view sluice.workflow_status as
  select r.id, g.name, r.graph, case when r.finished_at is not null or not r.stopping then case r.state when 'r' then case when r.paused then 'paused' else 'running' end when 's' then 'succeeded' when 'f' then 'failed' else 'cancelled' end else 'cancelling' end as state,
    r.open, r.created_at, r.finished_at, r.outcome, r.input, r.parent, r.name as map_name, r.state as code
  from sluice.workflow_run r left join sluice.workflow_graph g on g.id = r.graph where not r.pruning;

-- A page of runs, the newest first: those of a workflow, in a state, created since, and below an id; whatever is null is not
-- asked for. Of every graph no more are looked at than a page holds, so that neither runs of others nor what handlers have
-- made is passed over; only p_since is looked for among all of them. What lives is looked through as a whole.
create function sluice.workflow_list(p_name text, p_state text, p_since timestamptz, p_below bigint, p_max int) returns setof sluice.workflow_status
language plpgsql stable set enable_seqscan = off set enable_bitmapscan = off set plan_cache_mode = force_generic_plan set jit = off as $$
declare
  v_since timestamptz := coalesce(p_since, '-infinity'); v_below bigint := coalesce(p_below, 9223372036854775807);
  v_code "char" := case p_state when 'failed' then 'f' when 'cancelled' then 'c' end;
begin
  -- "Of this graph" is said below so that only an index by graph has them in order: that by id would pass over all others.
  if p_state in ('running', 'paused', 'cancelling') then
    return query select s.* from sluice.workflow_status s
      where s.finished_at is null and s.id < v_below and s.graph is not null and s.state = p_state and (p_name is null or s.name = p_name) and s.created_at >= v_since
      order by s.id desc limit p_max;
  elsif v_code is not null then
    return query select x.* from (select g.id from sluice.workflow_graph g where p_name is null or g.name = p_name) g cross join lateral (
      select s.* from sluice.workflow_status s
      where s.code in ('f', 'c') and s.code = v_code and (s.graph, s.id) < (g.id, v_below) and s.graph >= g.id and s.state = p_state and s.created_at >= v_since
      order by s.graph desc, s.id desc limit p_max) x order by x.id desc limit p_max;
  else
    return query select x.* from (select g.id from sluice.workflow_graph g where p_name is null or g.name = p_name) g cross join lateral (
      select s.* from sluice.workflow_status s
      where (s.graph, s.id) < (g.id, v_below) and s.graph >= g.id and (p_state is null or s.state = p_state) and s.created_at >= v_since
      order by s.graph desc, s.id desc limit p_max) x order by x.id desc limit p_max;
  end if;
end $$;

-- Per node: how many of its tasks there are, and how many have ended how. error: why it failed or was cancelled, without
-- its stack; of an each what the node tells, so that no item is looked at. due_at: until when it sleeps, or waits for its
-- event. unserved: its tasks are there or to be placed, and no live worker has their type.
create view sluice.workflow_progress as
  select n.run, n.node, coalesce(s.name, r.name) as name, n.kind, t.type,
    case n.state when 'p' then 'pending' when 'h' then 'held' when 'u' then 'placing' when 'r' then 'running' when 's' then 'succeeded' when 'f' then 'failed' when 'c' then 'cancelled' else 'skipped' end as state,
    n.total, n.succeeded, n.failed, n.cancelled, n.window_size,
    case when n.state not in ('r', 'u', 'h') or n.total = 0 then 0 when n.kind = 't' then (select count(*)::int from sluice.run x where x.id = n.task)
      -- A place that was given back by a note that nobody has looked at yet is not out: its task is over.
      when n.lane is not null then least(coalesce((select l.used from sluice.lane l where l.id = n.lane), 0), n.total - n.succeeded - n.failed - n.cancelled) end as started,
    n.task, n.outcome, n.started_at, n.finished_at,
    case when n.state in ('f', 'c') then json_build_object('name', e.kept ->> 'name', 'message', e.kept ->> 'message', 'code', e.kept ->> 'code', 'reason', e.kept ->> 'reason') end as error,
    s.event, case when n.state = 'r' and n.kind in ('s', 'v') then (select x.due_at from sluice.workflow_timer x where x.run = n.run and x.node = n.node) end as due_at,
    n.state in ('r', 'u') and n.kind in ('t', 'e') and not exists (select from sluice.worker w where w.expires_at > sluice.clock() and t.id = any (w.streams)) as unserved
  from sluice.workflow_node n join sluice.workflow_run r on r.id = n.run and not r.pruning
  left join sluice.workflow_step s on s.graph = r.graph and s.node = n.node left join sluice.stream t on t.id = coalesce(n.stream, s.stream)
  left join lateral (select coalesce(n.outcome, (select d.outcome from sluice.done d where d.id = n.task limit 1), case when n.state = 'c' then r.outcome end) as kept where n.state in ('f', 'c')) e on true;

-- What a run has come to: its result as JSON text, or null. p_max: bytes.
create function sluice.workflow_result(p_run bigint, p_max int) returns text language plpgsql stable as $$
declare r sluice.workflow_run; g sluice.workflow_graph; v record; v_text text := '';
begin
  select * into r from sluice.workflow_run where id = p_run;
  if r.pruning then perform sluice.refuse('run_not_found', 'there is no such run'); end if;
  if r.graph is null then return sluice.workflow_each(p_run, 1::smallint, '{}', p_max); end if;
  select * into g from sluice.workflow_graph where id = r.graph;
  if g.parts is not null then return sluice.workflow_render(p_run, g.parts, g.ref_nodes, g.ref_paths, p_max); end if;
  for v in select s.node, s.name from sluice.workflow_step s where s.graph = r.graph and s.successors = '{}' order by s.node loop
    v_text := v_text || case when v_text = '' then '' else ',' end || to_json(v.name)::text || ':' || sluice.workflow_value(p_run, v.node, '{}', p_max);
    perform sluice.workflow_fit(v_text, p_max);
  end loop;
  return '{' || v_text || '}';
end $$;

-- Why a run did not succeed: its nodes that failed or were cancelled, those first that no branch has caught. Of an
-- each the first item that failed, else the first that was cancelled, and not for the sake of another.
create function sluice.workflow_failures(p_run bigint, p_max int) returns table (node text, state text, item int, error json, recovered boolean) language sql stable as $$
  select coalesce(s.name, r.name), case n.state when 'f' then 'failed' else 'cancelled' end, i.item, case when n.kind = 'e' then coalesce(i.outcome, n.outcome) else coalesce(n.outcome, i.outcome) end,
    exists (select from sluice.workflow_step k cross join lateral unnest(k.deps, k.dep_on, k.dep_recovers) d(node, dep_on, recovers)
      join sluice.workflow_node x on x.run = r.id and x.node = k.node and x.state = 's'
      where k.graph = r.graph and d.node = n.node and d.dep_on = 'f' and d.recovers) as caught
  from sluice.workflow_run r join sluice.workflow_node n on n.run = r.id and n.state in ('f', 'c')
  left join sluice.workflow_step s on s.graph = r.graph and s.node = n.node
  left join lateral (select case when n.kind = 'e' then x.item end as item, x.outcome from (
      -- Each of them walks the items in their order, and ends at the first.
      (select 1 as n, w.item, d.outcome from sluice.workflow_task w cross join lateral (select outcome from sluice.done where id = w.id and state = 'f' limit 1) d
        where n.failed > 0 and w.run = r.id and w.node = n.node order by w.item limit 1)
      union all (select 2, w.item, d.outcome from sluice.workflow_task w cross join lateral (select outcome from sluice.done where id = w.id and state = 'c' limit 1) d
        where n.failed = 0 and w.run = r.id and w.node = n.node and d.outcome ->> 'reason' is distinct from sluice.workflow_blame() order by w.item limit 1)
      union all (select 3, w.item, d.outcome from sluice.workflow_task w cross join lateral (select outcome from sluice.done where id = w.id and state = 'c' limit 1) d
        where n.failed = 0 and w.run = r.id and w.node = n.node order by w.item limit 1)) x order by x.n limit 1) i on true
  where r.id = p_run order by caught, n.state = 'f' desc, n.finished_at, n.node limit p_max
$$;

-- A page of the items of an each by their index, after p_after: all, or those in one state, at most p_max. It looks at
-- no more than it returns, or where a state is asked for at p_look. Of those that failed or were cancelled also what is
-- kept of why. next: after which index to go on; null: there is nothing more.
create function sluice.workflow_item_page(p_run bigint, p_node text, p_state text, p_after int, p_max int, p_look int, out items json, out next int)
language plpgsql stable set enable_seqscan = off set enable_bitmapscan = off set plan_cache_mode = force_generic_plan set jit = off as $$
declare v_node smallint; v_kind "char"; v_look int := case when p_state is null then p_max else p_look end; v_n int; v_last int;
begin
  select n.node, n.kind into v_node, v_kind from sluice.workflow_run r join sluice.workflow_node n on n.run = r.id
  left join sluice.workflow_step s on s.graph = r.graph and s.node = n.node where r.id = p_run and not r.pruning and coalesce(s.name, r.name) = p_node;
  if not found then
    if not exists (select from sluice.workflow_run where id = p_run and not pruning) then perform sluice.refuse('run_not_found', 'there is no such run'); end if;
    perform sluice.refuse('unknown_node', format('run %s has no node %s', p_run, to_json(p_node)));
  end if;
  if v_kind <> 'e' then perform sluice.refuse('invalid_option', format('node %s is no each: it has no items', to_json(p_node))); end if;
  select count(*), max(x.item), coalesce(json_agg(json_build_object('index', x.item, 'task', x.id::text, 'state', x.state, 'error', case when x.state in ('failed', 'cancelled') then
    json_build_object('name', x.outcome ->> 'name', 'message', x.outcome ->> 'message', 'code', x.outcome ->> 'code', 'reason', x.outcome ->> 'reason') end) order by x.item), '[]')
  into v_n, v_last, items from (
    select w.item, w.id, coalesce(d.state, t.state) as state, d.outcome
    from (select k.item, k.id from sluice.workflow_task k where k.run = p_run and k.node = v_node and k.item > p_after order by k.item limit v_look) w
    left join lateral (select case y.state when 's' then 'succeeded' when 'f' then 'failed' else 'cancelled' end as state, y.outcome from sluice.done y where y.id = w.id limit 1) d on true
    -- What is in none of these waits, wherever that is. Not by task_state: that may walk all who stand at the window.
    left join lateral (select case when exists (select from sluice.run y where y.id = w.id) then 'running' when exists (select from sluice.scheduled y where y.id = w.id) then 'scheduled'
      when exists (select from sluice.suspect y where y.id = w.id) or sluice.ready_at(k.id, k.stream, k.rank, k.lanes) is not null then 'ready' else 'waiting' end as state
      from sluice.task k where d.state is null and k.id = w.id limit 1) t on true
    where p_state is null or coalesce(d.state, t.state) = p_state order by w.item limit p_max) x;
  if v_n < p_max then
    v_last := (select k.item from sluice.workflow_task k where k.run = p_run and k.node = v_node and k.item > p_after order by k.item offset v_look - 1 limit 1);
  end if;
  next := (select v_last where exists (select from sluice.workflow_task k where k.run = p_run and k.node = v_node and k.item > v_last));
end $$;
