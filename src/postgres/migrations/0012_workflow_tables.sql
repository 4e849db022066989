-- Workflows. A graph is plain data, compiled once to steps when it is declared; a run of it is rows: one per
-- run, one per node, and one that tells for each task where it belongs. Tasks of a run are ordinary tasks.
--
-- What workflow_declare takes as compiled steps (CompiledStep in src/postgres/workflow/declare.ts): a JSON
-- list, one object per node in the order of their numbers, which begin with 1:
--   {"name", "kind": "task"|"each"|"when"|"sleep"|"waitFor",
--    "after": [{"node": 1, "on": "success"|"failure"|"end"|"then"|"else", "recovers": false}],
--    task, each: "type", "queue", "priority"?, "attempts"?, "input": T; each: "items": T, "window"?, "onError"?
--    when: "ref": T, "is", "value"?; sleep: "ms" or "until": T; waitFor: "event", "timeoutMs"?}
-- T is a template: {"parts": [text], "nodes": [n], "paths": [[text]]}, JSON text with holes. Rendered it is the
-- first part, the value of the first reference, the second part and so on; n is a node's number, 0 for the
-- input of the run, -1 for the item and -2 for its index. So rendering needs no recursion and keeps every
-- text as it was written.
--
-- A node's life: p (pending) -> r (running), or u (its tasks are to be placed) and then r, or h (held: the run
-- is paused) and later r -> s, f, c (succeeded, failed, cancelled), or k (skipped, because what it needs
-- failed) or x (skipped, because a condition said so). A run is r and then s, f or c.
--
-- Locks. The row of workflow_run guards everything of its run: the states and counters of nodes, `open`,
-- windows. It is locked by a statement of its own, several in the order of their ids, after run rows and crash
-- rows and before lanes: barrier -> run rows -> crash -> workflow_run by id -> lanes -> gates. What is read
-- after it needs a later snapshot, so counters are read and changed by later statements. Exactly one
-- completer sees the last count, because counters change under the lock alone. Rows of workflow_note,
-- workflow_unplaced and workflow_halt are taken with SKIP LOCKED; whoever waits for a run's row while he holds
-- one is waited for by nobody. Starting a run only inserts.

create table sluice.workflow_graph (
  id int generated always as identity primary key,
  name text not null,
  digest text not null,
  graph json not null,
  -- The result of a run: a template, or null for the outputs of the nodes that none comes after.
  parts text[], ref_nodes smallint[], ref_paths text[],
  created_at timestamptz not null default sluice.clock(),
  unique (name, digest)
);

-- kind: t task, e each, w when, s sleep, v waitFor. dep_on: s success, f failure, e end, t then, o else.
-- ref_paths: each the text of a text[]. over_*: of items, of what a condition looks at, or of a time.
create table sluice.workflow_step (
  graph int not null, node smallint not null, name text not null, kind "char" not null,
  deps smallint[] not null, dep_on "char"[] not null, dep_recovers boolean[] not null, successors smallint[] not null,
  stream int, rank smallint, attempts smallint,
  parts text[], ref_nodes smallint[], ref_paths text[],
  over_parts text[], over_nodes smallint[], over_paths text[],
  window_size int, policy "char" not null,
  test text, test_value json, ms bigint, event text,
  primary key (graph, node)
);

create sequence sluice.workflow_id;
create sequence sluice.workflow_lane;

-- graph is null for a fan-out that a handler made: parent is its task, name the fan-out's. open: nodes that
-- are not over. stopping: somebody has cancelled it. outcome: why it was cancelled.
create table sluice.workflow_run (
  id bigint primary key, graph int, state "char" not null default 'r', open smallint not null,
  paused boolean not null default false, stopping boolean not null default false,
  input json not null, bytes_max int not null, parent bigint, name text,
  created_at timestamptz not null default sluice.clock(), finished_at timestamptz, outcome json
) with (fillfactor = 45);
create index workflow_live on sluice.workflow_run (id) where finished_at is null;
create index workflow_graph_runs on sluice.workflow_run (graph, id);
create index workflow_ended on sluice.workflow_run (state, finished_at) where finished_at is not null;
create unique index workflow_parent on sluice.workflow_run (parent, name) where parent is not null;

-- policy: t a task, a failFast, n finish, o collect, - no tasks. task: of a node of one task. lane: of its
-- window. failing: the rest is being cancelled. outcome: of a node that has no task, or could not make one.
create table sluice.workflow_node (
  run bigint not null, node smallint not null, kind "char" not null, policy "char" not null, state "char" not null,
  blocked smallint not null, failing boolean not null default false,
  total int not null default 0, succeeded int not null default 0, failed int not null default 0, cancelled int not null default 0,
  window_size int, lane bigint, task bigint, stream int, outcome json, started_at timestamptz, finished_at timestamptz,
  primary key (run, node)
) with (fillfactor = 50);
create unique index workflow_window on sluice.workflow_node (lane) where lane is not null;

-- Where a task belongs. item: from 0, in the order of the list.
create table sluice.workflow_task (
  id bigint primary key, run bigint not null, node smallint not null, item int not null
);
create unique index workflow_item on sluice.workflow_task (run, node, item);

-- When a sleep is over, or nobody waits for an event any more.
create table sluice.workflow_timer (
  run bigint not null, node smallint not null, due_at timestamptz not null, primary key (run, node)
);
create index workflow_timer_next on sluice.workflow_timer (due_at);

-- Events that no node has taken yet; each is taken by one, the first by the first that waits for its name.
create table sluice.workflow_event (
  n bigint generated always as identity primary key, run bigint not null, name text not null, payload json not null,
  created_at timestamptz not null default sluice.clock()
);
create index workflow_event_run on sluice.workflow_event (run, name, n);

-- Append-only notes of what happened inside users' transactions, which must not hold a run's lock: a task of a
-- run ended (id), or an event came for a run (id null).
create table sluice.workflow_note (
  n bigint generated always as identity, id bigint, run bigint
);
create index workflow_note_next on sluice.workflow_note (n);
create index workflow_note_id on sluice.workflow_note (id) where id is not null;

-- Nodes whose tasks are to be created by a transaction of its own: because only code can tell their keys
-- (in_code), or because they are many. Kept until somebody does it.
create table sluice.workflow_unplaced (
  run bigint not null, node smallint not null, stream int not null, in_code boolean not null, primary key (run, node)
);
create index workflow_unplaced_next on sluice.workflow_unplaced (in_code, stream, run, node);

-- Nodes whose tasks are being cancelled, and up to which item that was done; null: to the last. pending: those
-- that could not be, because they run or somebody had them in hand. They are asked again until they are over: one
-- that was asked to stop while it ran, and was handed back at that moment, would wait at a shut window for ever.
create table sluice.workflow_halt (
  run bigint not null, node smallint not null, item int default -1, pending bigint[] not null default '{}', reason text, primary key (run, node)
);

do $$
declare name text;
begin
  foreach name in array array['workflow_run', 'workflow_node', 'workflow_timer', 'workflow_note', 'workflow_unplaced', 'workflow_halt'] loop
    execute format('alter table sluice.%I set (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 2000,
      autovacuum_vacuum_cost_delay = 0, autovacuum_vacuum_insert_scale_factor = 0.2)', name);
  end loop;
end $$;

create function sluice.workflow_paths(p_paths json) returns text[] language sql immutable as
$$ select array(select array(select json_array_elements_text(p.value))::text from json_array_elements(p_paths) with ordinality p(value, n) order by p.n) $$;

create function sluice.workflow_texts(p_list json) returns text[] language sql immutable as
$$ select array(select json_array_elements_text(p_list)) $$;

-- What the definition cannot do wrong, for those who come without it.
create function sluice.workflow_check(p_steps json) returns void language plpgsql as $$
declare v_n int := json_array_length(p_steps); v_left int[]; v_next int[]; v_bad text; t json;
begin
  if v_n not between 1 and 1000 then perform sluice.refuse('invalid_workflow', 'a workflow has 1 to 1,000 nodes'); end if;
  select s.value ->> 'name' into v_bad from json_array_elements(p_steps) s group by 1 having count(*) > 1 or s.value ->> 'name' is null limit 1;
  if found then perform sluice.refuse('invalid_workflow', format('every node needs a name of its own: %L', v_bad)); end if;
  for t in select x.value from json_array_elements(p_steps) s cross join lateral (values (s.value -> 'input'), (s.value -> 'items'), (s.value -> 'ref'), (s.value -> 'until')) x(value)
      where json_typeof(x.value) = 'object' loop
    if json_array_length(t -> 'parts') <> json_array_length(t -> 'nodes') + 1 or json_array_length(t -> 'nodes') <> json_array_length(t -> 'paths')
        or exists (select from json_array_elements_text(t -> 'nodes') n where n::int not between -2 and v_n) then
      perform sluice.refuse('invalid_workflow', 'a template has one part more than references, each to a node that exists'); end if;
  end loop;
  if exists (select from json_array_elements(p_steps) s where (s.value ->> 'window')::int < 1 or (s.value ->> 'attempts')::int not between 1 and 32000 or (s.value ->> 'priority')::int not between -32000 and 32000) then
    perform sluice.refuse('invalid_workflow', 'a window is at least 1, attempts are 1 to 32000, a priority is -32000 to 32000'); end if;
  v_left := array(select n from generate_series(1, v_n) n);
  while v_left <> '{}' loop
    v_next := array(select l from unnest(v_left) l where exists (select from json_array_elements(p_steps -> (l - 1) -> 'after') a where (a.value ->> 'node')::int = any (v_left)));
    if v_next = v_left then
      perform sluice.refuse('invalid_workflow', format('nodes wait for each other in a circle: %s', (select string_agg(p_steps -> (l - 1) ->> 'name', ', ') from unnest(v_left) l))); end if;
    v_left := v_next;
  end loop;
end $$;

-- The same name and digest is the same graph, whoever declares it and however often.
create function sluice.workflow_declare(p_name text, p_digest text, p_graph json, p_steps json, p_result json default null) returns int language plpgsql as $$
declare v_id int; v_missing text;
begin
  select id into v_id from sluice.workflow_graph where name = p_name and digest = p_digest;
  if found then return v_id; end if;
  perform sluice.workflow_check(p_steps);
  select s.value ->> 'type' into v_missing from json_array_elements(p_steps) s where s.value ->> 'kind' in ('task', 'each')
    and not exists (select from sluice.stream t where t.type = s.value ->> 'type' and t.queue = coalesce(s.value ->> 'queue', 'default')) limit 1;
  if found then perform sluice.refuse('unknown_task', format('task type %L was never declared on its queue', v_missing)); end if;
  insert into sluice.workflow_graph (name, digest, graph, parts, ref_nodes, ref_paths)
  values (p_name, p_digest, p_graph, case when p_result is not null then sluice.workflow_texts(p_result -> 'parts') end,
    case when p_result is not null then sluice.workflow_texts(p_result -> 'nodes')::smallint[] end, case when p_result is not null then sluice.workflow_paths(p_result -> 'paths') end)
  on conflict do nothing returning id into v_id;
  if not found then return (select id from sluice.workflow_graph where name = p_name and digest = p_digest); end if;
  insert into sluice.workflow_step (graph, node, name, kind, deps, dep_on, dep_recovers, successors, stream, rank, attempts, parts, ref_nodes, ref_paths,
    over_parts, over_nodes, over_paths, window_size, policy, test, test_value, ms, event)
  select v_id, s.n, s.step ->> 'name', k.kind, d.deps, d.dep_on, d.recovers,
    array(select distinct o.n::smallint from json_array_elements(p_steps) with ordinality o(step, n) cross join lateral json_array_elements(o.step -> 'after') a
      where (a.value ->> 'node')::int = s.n order by 1),
    case when k.kind in ('t', 'e') then (select t.id from sluice.stream t where t.type = s.step ->> 'type' and t.queue = coalesce(s.step ->> 'queue', 'default')) end,
    -(s.step ->> 'priority')::int, (s.step ->> 'attempts')::int,
    sluice.workflow_texts(s.step -> 'input' -> 'parts'), sluice.workflow_texts(s.step -> 'input' -> 'nodes')::smallint[], sluice.workflow_paths(s.step -> 'input' -> 'paths'),
    sluice.workflow_texts(x.t -> 'parts'), sluice.workflow_texts(x.t -> 'nodes')::smallint[], sluice.workflow_paths(x.t -> 'paths'),
    (s.step ->> 'window')::int, case when k.kind = 't' then 't' when k.kind <> 'e' then '-' else case coalesce(s.step ->> 'onError', 'failFast') when 'finish' then 'n' when 'collect' then 'o' else 'a' end end,
    s.step ->> 'is', s.step -> 'value', coalesce((s.step ->> 'ms')::bigint, (s.step ->> 'timeoutMs')::bigint), s.step ->> 'event'
  from json_array_elements(p_steps) with ordinality s(step, n)
  cross join lateral (select case s.step ->> 'kind' when 'task' then 't' when 'each' then 'e' when 'when' then 'w' when 'sleep' then 's' when 'waitFor' then 'v' end::"char" as kind) k
  cross join lateral (select case k.kind when 'e' then s.step -> 'items' when 'w' then s.step -> 'ref' when 's' then s.step -> 'until' end as t) x
  cross join lateral (
    select coalesce(array_agg(a.node order by a.node), '{}') as deps, coalesce(array_agg(a.letter order by a.node), '{}') as dep_on, coalesce(array_agg(a.recovers order by a.node), '{}') as recovers
    from (select (e.value ->> 'node')::smallint as node, bool_or(coalesce((e.value ->> 'recovers')::boolean, false)) as recovers,
        min(case coalesce(e.value ->> 'on', 'success') when 'success' then 's' when 'failure' then 'f' when 'end' then 'e' when 'then' then 't' when 'else' then 'o' end)::"char" as letter
      from json_array_elements(s.step -> 'after') e group by 1) a) d;
  return v_id;
end $$;
