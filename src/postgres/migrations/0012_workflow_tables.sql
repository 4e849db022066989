-- Workflows. A graph is plain data, compiled once to steps when it is declared; a run of it is rows: one per
-- run, one per node, and one that tells for each task where it belongs. Tasks of a run are ordinary tasks.
--
-- What workflow_declare takes as compiled steps (CompiledStep in src/postgres/workflow/declare.ts): a JSON
-- list, one object per node in the order of their numbers, which begin with 1, and at most 500 of them:
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
-- completer sees the last count, because counters change under the lock alone; rows of workflow_again too. Rows of
-- workflow_note, workflow_unplaced, workflow_halt and workflow_orphan are taken with SKIP LOCKED; whoever waits for a
-- run's row while he holds one is waited for by nobody. A run that a handler made is newer than the run of its task,
-- so its id is higher: whoever makes it locks that one first, FOR KEY SHARE, and reads whether it is paused. A pause, a
-- resume and a prune lock the row FOR UPDATE; everything else FOR NO KEY UPDATE, which waits for no fan-out in the
-- making, so that many of them cannot hold up a settle. Starting a run only inserts, and keeps its graph (workflow_keep_graph), before all else.

create sequence sluice.workflow_declared;

create table sluice.workflow_graph (
  id int generated always as identity primary key,
  name text not null,
  digest text not null,
  graph json not null,
  -- The result of a run: a template, or null for the outputs of the nodes that none comes after.
  parts text[], ref_nodes smallint[], ref_paths text[],
  created_at timestamptz not null default sluice.clock(),
  -- Grows with every declaration that makes this one the last of its name: a start by name takes the highest.
  declared bigint not null default nextval('sluice.workflow_declared'),
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

-- graph is null for a fan-out that a handler made: parent is its task, name the fan-out's, outer_run the run that this
-- task belongs to, null if it belongs to none. open: nodes that are not over. stopping: somebody has cancelled it. pruning: it was too old, and some of its tasks are gone already.
-- outcome: why it was cancelled.
create table sluice.workflow_run (
  id bigint primary key, graph int, state "char" not null default 'r', open smallint not null,
  paused boolean not null default false, stopping boolean not null default false, pruning boolean not null default false,
  input json not null, bytes_max int not null, parent bigint, name text, outer_run bigint,
  created_at timestamptz not null default sluice.clock(), finished_at timestamptz, outcome json
) with (fillfactor = 45);
create index workflow_live on sluice.workflow_run (id) where finished_at is null;
create index workflow_graph_runs on sluice.workflow_run (graph, id);
-- What an operator looks for, among however many that succeeded.
create index workflow_unlucky on sluice.workflow_run (state, graph, id) where state in ('f', 'c') and graph is not null;
create index workflow_ended on sluice.workflow_run (state, finished_at) where finished_at is not null and parent is null;
create index workflow_maps on sluice.workflow_run (id) where parent is not null and finished_at is null and not stopping;
create index workflow_maps_ended on sluice.workflow_run (id) where parent is not null and finished_at is not null;
create index workflow_inner on sluice.workflow_run (outer_run, id) where outer_run is not null and (finished_at is null or stopping);
create unique index workflow_parent on sluice.workflow_run (parent, name) where parent is not null;

-- Has a row while a run may be live; steps and settles look here whether there are runs at all. Not at workflow_run: while
-- somebody holds a snapshot, a look for a live one walks over all that have ended since. Without a key, so that starts in
-- two open transactions do not wait for each other; then it has a few rows.
create table sluice.workflow_active (
  since timestamptz not null default sluice.clock()
);
alter table sluice.workflow_active replica identity full;

-- When it was last looked whether a run is live. Written by one at a time, see workflow_deactivate.
create table sluice.workflow_looked (
  at timestamptz not null
);
alter table sluice.workflow_looked replica identity full;

-- A run is about to be live: called by whatever starts one or retries one, before it does. The advisory lock is held
-- shared until the end of the transaction and guards "no row is taken away while a run that needs it is not committed".
-- It may be asked for anywhere: whoever holds it alone waits for nobody, and lets it go at once.
create function sluice.workflow_activate() returns void language plpgsql as $$
begin
  -- guard: active until all starts are committed -> test/postgres/workflow/standing.test.ts: "runs stay active while a start is not committed"
  perform pg_advisory_xact_lock_shared('sluice.workflow_active'::regclass::oid::int, 0);
  if current_setting('transaction_isolation') <> 'read committed' then
    -- An older snapshot may show a row that is gone: then this fails, as any write would.
    -- guard: active for an old snapshot -> test/postgres/workflow/standing.test.ts: "a start whose snapshot shows that runs were active fails if they are not any more"
    perform from sluice.workflow_active limit 1 for key share;
    if found then return; end if;
  elsif exists (select from sluice.workflow_active) then
    return;
  end if;
  insert into sluice.workflow_active default values;
end $$;

-- Nothing is active any more once no run is live. By one at a time, and about once a minute in all, because the look may
-- be a long one. From the newest run on: if one lives, it is most often among those.
create function sluice.workflow_deactivate() returns void language plpgsql
set enable_seqscan = off set enable_bitmapscan = off set plan_cache_mode = force_generic_plan set jit = off as $$
declare v_now timestamptz := sluice.clock(); v_live boolean;
begin
  if current_setting('transaction_isolation') <> 'read committed' or not exists (select from sluice.workflow_active)
    or not pg_try_advisory_xact_lock('sluice.workflow_active'::regclass::oid::int, 1) then return; end if;
  if exists (select from sluice.workflow_looked where at between v_now - interval '50 seconds' and v_now) then return; end if;
  v_live := exists (select from sluice.workflow_run where finished_at is null order by id desc limit 1);
  update sluice.workflow_looked set at = v_now;
  if not found then insert into sluice.workflow_looked values (v_now); end if;
  if v_live or not pg_try_advisory_xact_lock('sluice.workflow_active'::regclass::oid::int, 0) then return; end if;
  -- By a later snapshot than the lock: whatever was started before it is seen.
  -- guard: a live run keeps runs active -> test/postgres/workflow/standing.test.ts: "runs stay active for one that is committed while a keeper looks"
  delete from sluice.workflow_active where not exists (select from sluice.workflow_run where finished_at is null);
end $$;

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
-- run ended (id), or an event came for a run (id null). run: always the run that it is about, so that notes of a run in
-- another's hand can be passed over by index, however many they are.
create table sluice.workflow_note (
  n bigint generated always as identity, id bigint, run bigint not null
);
create index workflow_note_next on sluice.workflow_note (n);
create index workflow_note_run on sluice.workflow_note (run, n);
create index workflow_note_id on sluice.workflow_note (id) where id is not null;
alter table sluice.workflow_note replica identity full;

-- Nodes whose tasks are to be created by a transaction of its own: because only code can tell their keys
-- (in_code), or because they are many. Kept until somebody does it. Whoever does it holds the row; one that is not
-- wanted any more may be left behind while somebody holds it, and is deleted by the next who takes it. tries: how
-- often it failed for a reason that may pass; due_at: not before, -infinity if it was never tried. died: workers whose
-- process died while it ran the user's code for this node.
create table sluice.workflow_unplaced (
  run bigint not null, node smallint not null, stream int not null, in_code boolean not null,
  tries smallint not null default 0, due_at timestamptz not null default '-infinity', died bigint[] not null default '{}',
  primary key (run, node)
);
create index workflow_unplaced_next on sluice.workflow_unplaced (stream, due_at, run, node) where in_code;
create index workflow_unplaced_died on sluice.workflow_unplaced (run) where died <> '{}';
create index workflow_unplaced_long on sluice.workflow_unplaced (due_at, run, node) where not in_code;

-- Nodes for which a process runs the user's code just now, a row per batch: committed before, on another connection, and
-- deleted by the transaction that places them, which holds their rows of workflow_unplaced. So a row of which somebody
-- else can lock a node is of a process that died. Taken with SKIP LOCKED, after the rows of workflow_unplaced.
create table sluice.workflow_trying (
  id bigint generated always as identity primary key, worker bigint, runs bigint[] not null, nodes smallint[] not null,
  begun_at timestamptz not null default sluice.clock()
);

-- Nodes whose tasks are being cancelled, and up to which item that was done; null: to the last. pending: those
-- that could not be, because they run or somebody had them in hand. They are asked again until they are over: one
-- that was asked to stop while it ran, and was handed back at that moment, would wait at a shut window for ever.
create table sluice.workflow_halt (
  run bigint not null, node smallint not null, item int default -1, pending bigint[] not null default '{}', reason text, primary key (run, node)
);

-- Nodes that run again, and up to which item their tasks were brought back; null: to the last. failed, cancelled: how
-- many are not back yet, by how they had ended. Until they are, the node counts them as not over, and cannot end. If it
-- is to end without them, because it is cancelled or given up, they stay what they were. pending: those that could not be
-- brought back, because what they had fanned out is being cancelled. outcome: of the node, before.
create table sluice.workflow_again (
  run bigint not null, node smallint not null, item int default -1, pending bigint[] not null default '{}',
  failed int not null, cancelled int not null, outcome json, primary key (run, node)
);

-- Append-only notes: the task that made this run has failed or was cancelled. Written in users' transactions too.
create table sluice.workflow_orphan (
  run bigint not null
);
create index workflow_orphan_next on sluice.workflow_orphan (run);
alter table sluice.workflow_orphan replica identity full;

-- Runs that were paused or resumed, and what their tasks fanned out has not followed yet. root: what somebody paused.
-- Written and read under the barrier.
create table sluice.workflow_lead (
  run bigint primary key, root bigint not null
);
create index workflow_lead_root on sluice.workflow_lead (root, run);

do $$
declare name text;
begin
  foreach name in array array['workflow_run', 'workflow_node', 'workflow_timer', 'workflow_note', 'workflow_unplaced', 'workflow_halt', 'workflow_again', 'workflow_orphan'] loop
    execute format('alter table sluice.%I set (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 2000,
      autovacuum_vacuum_cost_delay = 0, autovacuum_vacuum_insert_scale_factor = 0.2)', name);
  end loop;
end $$;

create function sluice.workflow_paths(p_paths json) returns text[] language sql immutable as
$$ select array(select array(select json_array_elements_text(p.value))::text from json_array_elements(p_paths) with ordinality p(value, n) order by p.n) $$;

create function sluice.workflow_texts(p_list json) returns text[] language sql immutable as
$$ select array(select json_array_elements_text(p_list)) $$;

-- Whether this is a template whose references are to nodes that exist.
create function sluice.workflow_template(p_template json, p_nodes int) returns boolean language sql immutable as $$
  select coalesce(json_array_length(p_template -> 'parts') = json_array_length(p_template -> 'nodes') + 1 and json_array_length(p_template -> 'nodes') = json_array_length(p_template -> 'paths')
    and not exists (select from json_array_elements_text(p_template -> 'nodes') n where n::int not between -2 and p_nodes), false)
$$;

-- The names of nodes that wait for each other in a circle, at most ten. p_blocked: how many of those that a node comes
-- after are never over.
create function sluice.workflow_circle(p_steps json, p_behind text[], p_blocked int[]) returns text language plpgsql as $$
declare v_before int[]; v_at int; v_next int; v_way int[];
begin
  for i in 1..cardinality(p_blocked) loop
    continue when p_blocked[i] = 0;
    v_at := i;
    foreach v_next in array p_behind[i]::int[] loop v_before[v_next] := i; end loop;
  end loop;
  -- Whoever is blocked waits for somebody who is: after as many steps back as there are nodes we are in a circle.
  for i in 1..cardinality(p_blocked) loop v_at := v_before[v_at]; end loop;
  v_next := v_at;
  loop
    v_way := v_next || v_way; v_next := v_before[v_next];
    exit when v_next = v_at or cardinality(v_way) = 10;
  end loop;
  return (select string_agg(quote_literal(p_steps -> (w.node - 1) ->> 'name'), ', ' order by w.n) from unnest(v_way) with ordinality w(node, n));
end $$;

-- What the definition cannot do wrong, for those who come without it. Returns what comes after each node, as the
-- text of an int[]. Every node and every dependency is looked at a fixed number of times, for there may be many.
create function sluice.workflow_check(p_steps json, p_result json) returns text[] language plpgsql as $$
declare v_n int := case when json_typeof(p_steps) = 'array' then json_array_length(p_steps) else 0 end; v_bad text; v_kinds text[]; v_behind text[]; v_left int[]; v_free int[]; v_next int; v_head int := 0;
begin
  if v_n not between 1 and 500 then perform sluice.refuse('invalid_workflow', 'a workflow has 1 to 500 nodes'); end if;
  select s.value ->> 'name' into v_bad from json_array_elements(p_steps) s group by 1 having count(*) > 1 or s.value ->> 'name' is null limit 1;
  if found then perform sluice.refuse('invalid_workflow', format('every node needs a name of its own: %L', v_bad)); end if;
  select s.value ->> 'name' into v_bad from json_array_elements(p_steps) s where case s.value ->> 'kind'
    when 'task' then s.value ->> 'type' is not null and sluice.workflow_template(s.value -> 'input', v_n)
    when 'each' then s.value ->> 'type' is not null and sluice.workflow_template(s.value -> 'input', v_n) and sluice.workflow_template(s.value -> 'items', v_n)
      and coalesce(s.value ->> 'onError', 'failFast') in ('failFast', 'finish', 'collect')
    when 'when' then sluice.workflow_template(s.value -> 'ref', v_n) and s.value ->> 'is' in ('truthy', 'equals', 'differs', 'above', 'below', 'exists')
    when 'sleep' then case when s.value -> 'until' is null then (s.value ->> 'ms')::bigint between 0 and 31536000000 else sluice.workflow_template(s.value -> 'until', v_n) end
    when 'waitFor' then s.value ->> 'event' is not null and coalesce((s.value ->> 'timeoutMs')::bigint, 1) between 1 and 31536000000 end is not true limit 1;
  if found then
    perform sluice.refuse('invalid_workflow', format('node %L is not what its kind asks for; a template has one part more than references, each to a node that exists', v_bad)); end if;
  if p_result is not null and not sluice.workflow_template(p_result, v_n) then perform sluice.refuse('invalid_workflow', 'the result is no template of nodes that exist'); end if;
  if exists (select from json_array_elements(p_steps) s where (s.value ->> 'window')::int < 1 or (s.value ->> 'attempts')::int not between 1 and 32000 or (s.value ->> 'priority')::int not between -32000 and 32000) then
    perform sluice.refuse('invalid_workflow', 'a window is at least 1, attempts are 1 to 32000, a priority is -32000 to 32000'); end if;
  v_kinds := array(select s.value ->> 'kind' from json_array_elements(p_steps) s);
  with edge as materialized (
    select distinct s.n::int as node, (a.value ->> 'node')::int as before, coalesce(a.value ->> 'on', 'success') as on_what
    from json_array_elements(p_steps) with ordinality s(step, n) cross join lateral json_array_elements(s.step -> 'after') a
  ), bad as (
    select p_steps -> (e.node - 1) ->> 'name' as name from edge e where (e.before between 1 and v_n and case when e.on_what in ('then', 'else') then v_kinds[e.before] = 'when' else e.on_what in ('success', 'failure', 'end') end) is not true limit 1
  )
  select (select name from bad), array_agg(coalesce(b.list, '{}') order by g.n), array_agg(coalesce(d.n, 0) order by g.n) into v_bad, v_behind, v_left
  from generate_series(1, v_n) g(n)
  left join (select e.before, array_agg(distinct e.node order by e.node)::text as list from edge e group by e.before) b on b.before = g.n
  left join (select e.node, count(distinct e.before)::int as n from edge e group by e.node) d on d.node = g.n;
  if v_bad is not null then perform sluice.refuse('invalid_workflow', format('node %L comes after what is no node, or on what that node does not tell', v_bad)); end if;
  -- Those that wait for nothing are free, and each frees what waits for nothing else: all, unless there is a circle.
  v_free := array(select n from generate_series(1, v_n) n where v_left[n] = 0);
  while v_head < cardinality(v_free) loop
    v_head := v_head + 1;
    foreach v_next in array v_behind[v_free[v_head]]::int[] loop
      v_left[v_next] := v_left[v_next] - 1;
      if v_left[v_next] = 0 then v_free := v_free || v_next; end if;
    end loop;
  end loop;
  if v_head < v_n then perform sluice.refuse('invalid_workflow', 'nodes wait for each other in a circle: ' || sluice.workflow_circle(p_steps, v_behind, v_left)); end if;
  return v_behind;
exception when data_exception then
  perform sluice.refuse('invalid_workflow', 'this is no compiled workflow: ' || sqlerrm);
end $$;

-- The same name and digest is the same graph, whoever declares it and however often. One that another of its name came
-- after is the last again, as after a rollback: a write once per process and deploy, not per start.
create function sluice.workflow_declare(p_name text, p_digest text, p_graph json, p_steps json, p_result json default null) returns int language plpgsql as $$
declare v_id int; v_declared bigint; v_missing text; v_behind text[];
begin
  select id, declared into v_id, v_declared from sluice.workflow_graph where name = p_name and digest = p_digest;
  if found then
    if not exists (select from sluice.workflow_graph where name = p_name and declared > v_declared) then return v_id; end if;
    update sluice.workflow_graph set declared = nextval('sluice.workflow_declared') where id = v_id;
    -- Else it was pruned at this moment.
    if found then return v_id; end if;
  end if;
  v_behind := sluice.workflow_check(p_steps, p_result);
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
    v_behind[s.n]::smallint[],
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

-- Held shared by whoever starts a run of a graph, until he commits, and alone by whoever deletes it: nobody sees a
-- run that is not committed. An advisory lock, because a row lock would be written for every start. It is taken
-- before all others, and a start never waits for more than a delete of a few rows.
create function sluice.workflow_keep_graph(p_graph int) returns void language plpgsql as $$
begin
  -- guard: a graph is kept for who starts it -> test/postgres/workflow/graph.test.ts: "one is kept for a start that is not committed yet"
  perform pg_advisory_xact_lock_shared('sluice.workflow_graph'::regclass::oid::int, p_graph);
end $$;

-- Deletes graphs older than p_ms that no run refers to any more and that are not the last declared of their name, at most
-- p_max of them. Whoever starts one later finds that it is unknown, and declares it again.
create function sluice.workflow_prune_graphs(p_ms bigint, p_max int) returns int language plpgsql
set enable_seqscan = off set enable_bitmapscan = off set plan_cache_mode = force_generic_plan set jit = off as $$
declare v_id int; v_n int := 0;
begin
  for v_id in select g.id from sluice.workflow_graph g where g.created_at < sluice.clock() - p_ms * interval '1 millisecond'
      and exists (select from sluice.workflow_graph k where k.name = g.name and k.declared > g.declared) and not exists (select from sluice.workflow_run r where r.graph = g.id) order by g.id limit p_max loop
    continue when not pg_try_advisory_xact_lock('sluice.workflow_graph'::regclass::oid::int, v_id);
    -- Whoever declares it just now is not waited for, because he may start it next and wait for us.
    perform from sluice.workflow_graph g where g.id = v_id for update skip locked;
    continue when not found;
    -- Looked up again by a later snapshot: a run may have been committed before we had the lock.
    delete from sluice.workflow_graph g where g.id = v_id and not exists (select from sluice.workflow_run r where r.graph = v_id)
      and exists (select from sluice.workflow_graph k where k.name = g.name and k.declared > g.declared);
    continue when not found;
    delete from sluice.workflow_step where graph = v_id;
    v_n := v_n + 1;
  end loop;
  -- Last: starts wait from here to the commit.
  perform sluice.workflow_deactivate();
  return v_n;
end $$;
