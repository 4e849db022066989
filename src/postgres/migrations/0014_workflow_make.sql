-- Make: tasks of nodes, and what a node does when it begins. Called with the run's row locked: see 0012.

-- What streams make of tasks: workflow_terms of each, in lists.
create type sluice.workflow_made as (stream int, rank smallint, attempts smallint, gate int);

-- Creates the tasks of these nodes of one task each and lets the nodes run: those with fate t, in rows that the
-- caller has looked up. Refuses if one cannot be rendered. The value of a task that succeeded is read here and
-- not by workflow_value: that is most of what is ever referred to, and a call for each costs more than the task.
create function sluice.workflow_make(p_runs bigint[], p_nodes smallint[], p_tids tid[], p_graphs int[], p_bytes int[], p_streams int[], p_fates "char"[], p_terms sluice.workflow_made[]) returns int
language plpgsql set enable_seqscan = off set enable_bitmapscan = off set plan_cache_mode = force_generic_plan set jit = off as $$
declare v_made int;
begin
  with item as materialized (
    select nextval('sluice.task_id') as id, u.run, u.node, u.tid, u.stream, coalesce(s.rank, t.rank) as rank, coalesce(s.attempts, t.attempts) as attempts, t.gate,
      sluice.workflow_fit(case when cardinality(s.ref_nodes) = 0 then s.parts[1]
        when cardinality(s.ref_nodes) = 1 then s.parts[1] || coalesce((
          select coalesce((d.outcome #> s.ref_paths[1]::text[])::text, 'null') from sluice.workflow_node k cross join lateral (select outcome from sluice.done where id = k.task limit 1) d
          where k.run = u.run and k.node = s.ref_nodes[1] and k.state = 's' and k.kind = 't' and sluice.workflow_cut(d.outcome) is not true
        ), sluice.workflow_value(u.run, s.ref_nodes[1], s.ref_paths[1]::text[], u.bytes_max)) || s.parts[2]
        -- Many are counted before they are joined.
        when cardinality(s.ref_nodes) > 16 then sluice.workflow_render(u.run, s.parts, s.ref_nodes, s.ref_paths, u.bytes_max)
        else s.parts[1] || (
          select string_agg(case when f.node = 0 then coalesce(((select k.input from sluice.workflow_run k where k.id = u.run) #> f.path::text[])::text, 'null')
              when x.state = 's' and x.kind = 't' and sluice.workflow_cut(x.outcome) is not true then coalesce((x.outcome #> f.path::text[])::text, 'null')
              else sluice.workflow_value(u.run, f.node, f.path::text[], u.bytes_max) end || s.parts[f.i + 1], '' order by f.i)
          from unnest(s.ref_nodes, s.ref_paths) with ordinality f(node, path, i)
          left join lateral (select k.state, k.kind, d.outcome from sluice.workflow_node k left join lateral (select outcome from sluice.done where id = k.task limit 1) d on true
            where k.run = u.run and k.node = f.node limit 1) x on true) end, u.bytes_max)::json as input
    from unnest(p_runs, p_nodes, p_tids, p_graphs, p_bytes, p_streams, p_fates) u(run, node, tid, graph, bytes_max, stream, fate)
    join unnest(p_terms) t on t.stream = u.stream
    cross join lateral (select * from sluice.workflow_step k where k.graph = u.graph and k.node = u.node limit 1) s
    where u.fate = 't'
  ), tasks as (
    insert into sluice.task (id, stream, rank, attempts_max, gate, input) select id, stream, rank, attempts, gate, input from item
  ), readies as (
    insert into sluice.ready (id, stream, rank, attempt, turn) select id, stream, rank, 0, sluice.own_turn(id) from item where gate = 0
  ), gates as (
    insert into sluice.gated (id, stream, gate, rank, attempt, turn) select id, stream, gate, rank, 0, sluice.own_turn(id) from item where gate <> 0
  ), members as (
    insert into sluice.workflow_task (id, run, node, item) select id, run, node, 0 from item
  ), running as (
    update sluice.workflow_node n set state = 'r', blocked = 0, task = i.id, stream = i.stream, total = 1, outcome = null, started_at = sluice.clock() from item i where n.ctid = i.tid
  )
  select count(*) into v_made from item;
  return v_made;
end $$;

-- The same; if one cannot be rendered, one after the other: those that cannot say why, in errors.
create function sluice.workflow_make_each(p_runs bigint[], p_nodes smallint[], p_tids tid[], p_graphs int[], p_bytes int[], p_streams int[], p_fates "char"[], p_terms sluice.workflow_made[],
  out made int, out errors json[]) language plpgsql as $$
begin
  begin
    made := sluice.workflow_make(p_runs, p_nodes, p_tids, p_graphs, p_bytes, p_streams, p_fates, p_terms);
    return;
  exception when sqlstate 'SLUIC' or data_exception or program_limit_exceeded then
    made := 0; errors := array_fill(null::json, array[cardinality(p_runs)]);
  end;
  for i in 1..cardinality(p_runs) loop
    begin
      made := made + sluice.workflow_make(p_runs[i:i], p_nodes[i:i], p_tids[i:i], p_graphs[i:i], p_bytes[i:i], p_streams[i:i], p_fates[i:i], p_terms);
    exception when sqlstate 'SLUIC' or data_exception or program_limit_exceeded then
      errors[i] := sluice.workflow_caught(sqlstate, sqlerrm);
    end;
  end loop;
end $$;

-- Why something could not be rendered, as a node tells it.
create function sluice.workflow_caught(p_state text, p_message text) returns json language sql immutable as
$$ select sluice.workflow_error(case when p_state <> 'SLUIC' then 'input_not_storable' when p_message like '%too large to be stored' then 'result_truncated'
    when p_message like '%are allowed' then 'input_too_large' else 'invalid_workflow' end, p_message) $$;

-- The items of an each as one JSON text, and the parts of their inputs in which only what differs by item is left open.
create function sluice.workflow_items(p_run bigint, p_node smallint, out items json, out parts text[], out kinds smallint[], out paths text[], out bytes_max int)
language plpgsql stable as $$
declare v record; v_part text; v_value text; v_bytes bigint := 0;
begin
  select s.*, r.bytes_max as max into v from sluice.workflow_run r join sluice.workflow_step s on s.graph = r.graph and s.node = p_node where r.id = p_run;
  bytes_max := v.max;
  items := sluice.workflow_render(p_run, v.over_parts, v.over_nodes, v.over_paths, sluice.workflow_list_bytes_max())::json;
  parts := '{}'; kinds := '{}'; paths := '{}'; v_part := v.parts[1];
  -- Of no items there is nothing to render.
  if json_typeof(items) <> 'array' or json_array_length(items) = 0 then return; end if;
  for i in 1..cardinality(v.ref_nodes) loop
    if v.ref_nodes[i] >= 0 then
      v_value := sluice.workflow_value(p_run, v.ref_nodes[i], v.ref_paths[i]::text[], v.max);
      -- Each item is given all of it.
      v_bytes := v_bytes + octet_length(v_value);
      if v_bytes > v.max then perform sluice.workflow_too_large(v_bytes, v.max); end if;
      v_part := v_part || v_value || v.parts[i + 1];
    else
      parts := parts || v_part; kinds := kinds || v.ref_nodes[i]; paths := paths || v.ref_paths[i]; v_part := v.parts[i + 1];
    end if;
  end loop;
  parts := parts || v_part;
end $$;

-- The input of one item.
create function sluice.workflow_item_input(p_item json, p_index bigint, p_parts text[], p_kinds smallint[], p_paths text[], p_max int) returns text language plpgsql immutable as $$
declare v_text text := p_parts[1];
begin
  for i in 1..cardinality(p_kinds) loop
    v_text := v_text || case when p_kinds[i] = -2 then p_index::text else coalesce((p_item #> p_paths[i]::text[])::text, 'null') end || p_parts[i + 1];
  end loop;
  if octet_length(v_text) > p_max then return sluice.workflow_fit(v_text, p_max); end if;
  return v_text;
end $$;

-- Creates all tasks of an each that needs no code, in the order of its items. The caller marks the node.
-- Within a window's lane all have the same place, so that ids and with them items decide.
create function sluice.workflow_fan(p_run bigint, p_node smallint, p_stream int, p_lane bigint, p_rank smallint, p_attempts smallint, p_gate int,
  p_items json, p_parts text[], p_kinds smallint[], p_paths text[], p_max int) returns void
language plpgsql set enable_seqscan = off set enable_bitmapscan = off set plan_cache_mode = force_generic_plan set jit = off as $$
declare v_sole text[] := case when p_kinds = '{-1}' then p_paths[1]::text[] end;
begin
  with item as materialized (
    select nextval('sluice.task_id') as id, e.n, case when v_sole is not null then sluice.workflow_fit(p_parts[1] || coalesce((e.value #> v_sole)::text, 'null') || p_parts[2], p_max)
      else sluice.workflow_item_input(e.value, e.n - 1, p_parts, p_kinds, p_paths, p_max) end::json as input
    from json_array_elements(p_items) with ordinality e(value, n)
  ), tasks as (
    insert into sluice.task (id, stream, rank, attempts_max, gate, lanes, lane_limits, lane_keys, input)
    select id, p_stream, p_rank, p_attempts, p_gate, case when p_lane is not null then array[p_lane] end, case when p_lane is not null then array[-2] end,
      case when p_lane is not null then array[p_run || ':' || p_node] end, input from item
  ), waits as (
    insert into sluice.wait (id, lane, place, rank, attempt, held, stream, gate, lanes, lane_limits)
    select id, p_lane, 0, p_rank, 0, 0, p_stream, p_gate, array[p_lane], array[-2] from item where p_lane is not null
  ), readies as (
    insert into sluice.ready (id, stream, rank, attempt, turn) select id, p_stream, p_rank, 0, sluice.own_turn(id) from item where p_lane is null and p_gate = 0
  ), gates as (
    insert into sluice.gated (id, stream, gate, rank, attempt, turn) select id, p_stream, p_gate, p_rank, 0, sluice.own_turn(id) from item where p_lane is null and p_gate <> 0
  ), notes as (
    insert into sluice.dirty (lane, limit_id) select p_lane, -2 where p_lane is not null
  )
  insert into sluice.workflow_task (id, run, node, item) select id, p_run, p_node, n - 1 from item;
end $$;

-- An each begins. Its tasks are created here if no code is needed and they are at most p_room; else by a transaction of
-- its own, so that no step takes seconds. One that was held while it was to be placed keeps its window: somebody may still
-- be at it, whose tasks stand there. Returns s if there is nothing to do, f if it cannot be done, else r or u.
create function sluice.workflow_begin_each(p_run bigint, p_node smallint, p_room int) returns "char" language plpgsql as $$
declare v record; s record; t record; v_total int; v_lane bigint; v_window int; v_error json; v_later boolean := false;
begin
  select k.* into s from sluice.workflow_run r join sluice.workflow_step k on k.graph = r.graph and k.node = p_node where r.id = p_run;
  -- guard: a window is kept -> test/postgres/workflow/place.test.ts: "a fan-out that is paused and resumed while it is placed keeps its window"
  select n.lane, n.window_size into v_lane, v_window from sluice.workflow_node n where n.run = p_run and n.node = p_node;
  -- guard: a set window outlives a retry -> test/postgres/workflow/again.test.ts: "a window that was set for a run holds for it after a retry too"
  v_window := coalesce(v_window, s.window_size);
  begin
    select * into v from sluice.workflow_items(p_run, p_node);
    if json_typeof(v.items) <> 'array' then
      v_error := sluice.workflow_error('items_not_a_list', 'the items are no list but ' || case json_typeof(v.items) when 'null' then 'null: the reference leads nowhere' else 'a JSON ' || json_typeof(v.items) end);
    else
      v_total := json_array_length(v.items);
      if v_total > 1000000 or v_total::bigint * (select coalesce(sum(octet_length(p)), 0) from unnest(v.parts) p) > 1073741824 then
        v_error := sluice.workflow_error('input_too_large', format('%s items with what each of them is given are more than a fan-out may have', v_total));
      end if;
    end if;
    if v_error is null and v_total > 0 then
      if v_window is not null then v_lane := coalesce(v_lane, (2::bigint << 60) | nextval('sluice.workflow_lane')); end if;
      select * into t from sluice.workflow_terms(s.stream);
      -- One that was paused while another had it in hand may still have its row: he may place it yet.
      -- guard: what is in hand is left there -> test/postgres/workflow/standing.test.ts: "a fan-out in a placer's hand that needs no code any more when it is resumed stops nobody"
      v_later := t.in_code or v_total > p_room or exists (select from sluice.workflow_unplaced x where x.run = p_run and x.node = p_node);
      if not v_later then
        perform sluice.workflow_fan(p_run, p_node, s.stream, v_lane, coalesce(s.rank, t.rank), coalesce(s.attempts, t.attempts), t.gate, v.items, v.parts, v.kinds, v.paths, v.bytes_max);
      end if;
    end if;
  exception when sqlstate 'SLUIC' or data_exception or program_limit_exceeded then
    v_error := sluice.workflow_caught(sqlstate, sqlerrm);
  end;
  if v_error is not null or v_total = 0 then
    update sluice.workflow_node set state = case when v_error is null then 's' else 'f' end::"char", outcome = v_error, finished_at = sluice.clock() where run = p_run and node = p_node;
    return case when v_error is null then 's' else 'f' end;
  end if;
  if v_later then
    -- guard: the row in hand is kept -> test/postgres/workflow/place.test.ts: "a fan-out that is paused and resumed while it is placed keeps its window"
    insert into sluice.workflow_unplaced (run, node, stream, in_code) values (p_run, p_node, s.stream, t.in_code) on conflict do nothing;
  end if;
  update sluice.workflow_node set state = case when v_later then 'u' else 'r' end::"char", total = v_total, window_size = v_window, lane = v_lane, stream = s.stream
  where run = p_run and node = p_node;
  return case when v_later then 'u' else 'r' end;
end $$;

-- A node without tasks begins. Returns its state: over at once, or r when something must come first.
create function sluice.workflow_begin(p_run bigint, p_node smallint) returns "char" language plpgsql as $$
declare s record; v_text text; v_outcome json; v_state "char" := 'r'; v_at timestamptz; v_now timestamptz := sluice.clock();
begin
  select k.*, r.bytes_max into s from sluice.workflow_run r join sluice.workflow_step k on k.graph = r.graph and k.node = p_node where r.id = p_run;
  begin
    if s.kind = 'w' then
      v_outcome := sluice.workflow_holds(sluice.workflow_render(p_run, s.over_parts, s.over_nodes, s.over_paths, s.bytes_max), s.test, s.test_value)::text::json;
      v_state := 's';
    elsif s.kind = 's' then
      if s.over_parts <> '{}' then
        v_text := sluice.workflow_render(p_run, s.over_parts, s.over_nodes, s.over_paths, s.bytes_max)::json #>> '{}';
        v_at := sluice.workflow_time(v_text);
        if v_at is null or v_at not between v_now - interval '100 years' and v_now + interval '100 years' then
          perform sluice.refuse('invalid_option', format('node %s cannot sleep until %s: a time is ISO text or milliseconds since 1970, within a hundred years', to_json(s.name),
            case when v_text is null then 'null (the reference leads nowhere, or to null)' else to_json(left(v_text, 100))::text end)); end if;
      else
        v_at := v_now + s.ms * interval '1 millisecond';
      end if;
      if v_at <= v_now then v_state := 's'; end if;
    else
      delete from sluice.workflow_event where n = (select e.n from sluice.workflow_event e where e.run = p_run and e.name = s.event order by e.n limit 1) returning payload into v_outcome;
      if found then v_state := 's';
      elsif s.ms is not null then v_at := v_now + s.ms * interval '1 millisecond';
      end if;
    end if;
  exception when sqlstate 'SLUIC' or data_exception or program_limit_exceeded then
    v_state := 'f';
    v_outcome := case when s.kind = 's' then sluice.workflow_error('invalid_option', sqlerrm) else sluice.workflow_caught(sqlstate, sqlerrm) end;
  end;
  if v_state = 'r' then
    if v_at is not null then
      insert into sluice.workflow_timer (run, node, due_at) values (p_run, p_node, v_at);
      perform sluice.look_by(v_at);
    end if;
  else
    update sluice.workflow_node set state = v_state, outcome = v_outcome, finished_at = v_now where run = p_run and node = p_node;
  end if;
  return v_state;
end $$;
