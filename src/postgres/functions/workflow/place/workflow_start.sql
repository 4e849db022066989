-- Start, and the placing of tasks that a transaction of its own creates.

-- Starts runs of a graph: only inserts, so it may be part of a user's transaction. p_inputs, p_idempotency: texts split
-- by U+001E, as for tasks; '' for a run without a key. Nodes that wait for nothing begin at once. Returns the ids of
-- the runs and, with keys, whether each existed before.
create or replace function sluice.workflow_start(
  p_graph int, p_inputs text, p_idempotency text default null, p_idempotency_ms bigint default 86400000,
  p_bytes_max int default 1048576,
  out ids bigint[], out existed boolean[]
) language plpgsql /* settings: index plans */ as $$
declare
  v_inputs json[] := string_to_array(p_inputs, E'\x1e')::json[];
  v_name text; v_fresh bigint[]; v_runs bigint[]; v_nodes smallint[];
begin
  perform sluice.workflow_keep_graph(p_graph);
  perform sluice.workflow_activate();
  -- An older snapshot still shows a graph that was deleted before we asked to keep it: then this fails, as any write
  -- would.
  -- guard: a graph that an old snapshot shows -> test/postgres/workflow/standing.test.ts: "a graph that was deleted after the caller's snapshot is not started"
  if current_setting('transaction_isolation') <> 'read committed' then
    perform from sluice.workflow_graph where id = p_graph /* guard:graph */ for key share /* end */;
  end if;
  select name into v_name from sluice.workflow_graph where id = p_graph;
  if not found then
    perform sluice.refuse('unknown_workflow', 'there is no such workflow');
  end if;
  ids := array(select nextval('sluice.workflow_id') from generate_series(1, cardinality(v_inputs)));
  v_fresh := ids;
  if p_idempotency is not null then
    select f.ids, array(select not x from unnest(f.fresh) x) into ids, existed
    from sluice.claim_keys_of(
      E'\x1fworkflow\x1f' || v_name, ids, string_to_array(p_idempotency, E'\x1e'), v_inputs, p_idempotency_ms) f;
    v_fresh := array(select u.id from unnest(ids, existed) u(id, existed) where not u.existed);
  end if;
  if v_fresh = '{}' then
    return;
  end if;
  insert into sluice.workflow_run (id, graph, open, input, bytes_max)
  select u.id, p_graph, (select count(*) from sluice.workflow_step where graph = p_graph), u.input, p_bytes_max
  from unnest(ids, v_inputs, existed) u(id, input, existed)
  -- A key that comes twice in this call is one run, with the first input.
  -- guard: one run per key -> test/postgres/workflow/notes.test.ts: "an idempotency key used twice in one call starts one run"
  where /* guard:once */ u.existed is not true /* end */;
  insert into sluice.workflow_node (run, node, kind, policy, state, blocked)
  select r, s.node, s.kind, s.policy, 'pending', cardinality(s.deps)
  from unnest(v_fresh) r
  cross join (select * from sluice.workflow_step where graph = p_graph order by node) s;
  select array_agg(r), array_agg(s.node) into v_runs, v_nodes
  from unnest(v_fresh) r
  cross join sluice.workflow_step s
  where s.graph = p_graph and s.deps = '{}';
  perform sluice.workflow_begin_nodes(v_runs, v_nodes);
end $$;
