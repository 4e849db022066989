-- Advance: what ends makes its successors runnable, in the transaction in which it ends. Called by whatever
-- ends tasks, after it has recorded the ends and before it locks lanes. See migrations/0001_tables.sql for the order of locks.

-- Nodes of which p_hits dependencies have just come to their end: those that were the last begin, or are
-- skipped. p_hits null: the nodes themselves have come to their end, p_good: all of them succeeded, and it is about
-- what depends on them. Returns those that are over already, and what was made.
create or replace function sluice.workflow_go(p_runs bigint[], p_nodes smallint[], p_hits smallint[], p_good boolean default false,
  out over_runs bigint[], out over_nodes smallint[], out streams int[], out made int, out joined boolean)
language plpgsql /* settings: index plans */ as $$
declare
  v_runs bigint[]; v_nodes smallint[]; v_tids tid[]; v_left smallint[]; v_fates "char"[]; v_streams int[]; v_graphs int[]; v_bytes int[]; v_now timestamptz := sluice.clock();
  v_types int[]; v_type int; v_in_code int[]; v_terms sluice.workflow_made[]; t record; v_errors json[]; v_state "char"; v_room int := 5000; v_total int;
begin
  made := 0; joined := false;
  -- A dependency fulfils, refuses (because it failed: bad, or because a condition says so: unmet) or is neutral:
  -- skipped by a condition, which counts as fulfilled only beside one that was. That a branch was taken fulfils
  -- nothing: in it a node without what it needs is skipped, as it is outside. Where all that a node needs has
  -- just succeeded together, the last of which is most often the only one, nothing is looked up.
  select array_agg(z.run), array_agg(z.node), array_agg(z.tid), array_agg(z.left_over), array_agg(z.fate), array_agg(z.stream), array_agg(z.graph), array_agg(z.bytes_max),
    array_agg(distinct z.stream) filter (where z.fate = 't')
  into v_runs, v_nodes, v_tids, v_left, v_fates, v_streams, v_graphs, v_bytes, v_types
  from (
    select u.run, u.node, n.tid, n.blocked - u.hits as left_over, s.stream, u.graph, u.bytes_max,
      case when n.blocked > u.hits then 'b' else coalesce(
        case when u.hits < cardinality(s.deps) or u.hits > 0 and not (p_good and 's' = all (s.dep_on)) then (
          select case when bool_or(x.fate = 'bad') then 'k' when bool_or(x.fate = 'unmet') or not bool_or(x.fate = 'met') filter (where x.dep_on in ('s', 'e')) then 'x' end::"char"
          from (select d.dep_on, case d.dep_on when 'e' then 'met'
              when 's' then case when k.state = 's' then 'met' when k.state = 'x' then 'neutral' else 'bad' end
              when 'f' then case when k.state in ('f', 'c') then 'met' when k.state = 'k' then 'bad' else 'unmet' end
              else case when k.state = 's' then case when (k.outcome::text = 'true') = (d.dep_on = 't') then 'met' else 'unmet' end when k.state = 'x' then 'unmet' else 'bad' end
            end as fate
            from unnest(s.deps, s.dep_on) d(node, dep_on) cross join lateral (select state, outcome from sluice.workflow_node k where k.run = u.run and k.node = d.node limit 1) k) x) end,
        case when u.paused then 'h' when n.state = 'h' and s.kind = 't' and exists (select from sluice.workflow_unplaced x where x.run = u.run and x.node = u.node) then 'u' else s.kind end) end::"char" as fate
    from (
      select h.run, h.node, r.graph, r.paused, r.bytes_max, h.hits from unnest(p_runs, p_nodes, p_hits) h(run, node, hits)
      cross join lateral (select graph, paused, bytes_max from sluice.workflow_run where id = h.run limit 1) r where p_hits is not null
      union all
      select h.run, x.node, r.graph, r.paused, r.bytes_max, count(*)::smallint from unnest(p_runs, p_nodes) h(run, node)
      cross join lateral (select graph, paused, bytes_max from sluice.workflow_run where id = h.run limit 1) r
      cross join lateral (select successors from sluice.workflow_step k where k.graph = r.graph and k.node = h.node limit 1) k
      cross join lateral unnest(k.successors) x(node) where p_hits is null group by 1, 2, 3, 4, 5
    ) u
    cross join lateral (select ctid as tid, blocked, state from sluice.workflow_node k where k.run = u.run and k.node = u.node and k.state in ('p', 'h') limit 1) n
    cross join lateral (select kind, stream, deps, dep_on from sluice.workflow_step k where k.graph = u.graph and k.node = u.node limit 1) s
  ) z;
  if v_runs is null then return; end if;

  if v_types is not null then
    -- The terms once per stream: nodes of many runs are mostly of a few types.
    foreach v_type in array v_types loop
      select * into t from sluice.workflow_terms(v_type);
      if t.in_code then v_in_code := v_in_code || v_type; else v_terms := v_terms || row(v_type, t.rank, t.attempts, t.gate)::sluice.workflow_made; streams := streams || v_type; end if;
    end loop;
    if v_in_code is not null then
      v_fates := array(select case when u.fate = 't' and u.stream = any (v_in_code) then 'u' else u.fate end from unnest(v_fates, v_streams) with ordinality u(fate, stream, n) order by u.n);
    end if;
    if v_terms is not null then
      select k.made, k.errors into made, v_errors from sluice.workflow_make_each(v_runs, v_nodes, v_tids, v_graphs, v_bytes, v_streams, v_fates, v_terms) k;
    end if;
  end if;
  -- The life of a chain: every node that could begin has its task, and there is nothing else to do.
  if made = cardinality(v_runs) then return; end if;

  if v_errors is not null then
    v_fates := array(select case when u.error is null then u.fate else 'f' end from unnest(v_fates, v_errors) with ordinality u(fate, error, n) order by u.n);
  end if;
  update sluice.workflow_node n set blocked = u.left_over, outcome = u.error, stream = coalesce(u.stream, n.stream), total = case when u.fate = 'u' then 1 else n.total end,
    state = case when u.fate = 'b' then n.state when u.fate in ('k', 'x', 'h', 'u', 'f') then u.fate else 'r' end::"char",
    started_at = case when u.fate not in ('b', 'k', 'x', 'h', 'f') then v_now else n.started_at end, finished_at = case when u.fate in ('f', 'k', 'x') then v_now end
  from unnest(v_tids, v_left, v_fates, v_streams, v_errors) u(tid, left_over, fate, stream, error) where n.ctid = u.tid and u.fate <> 't';
  if 'u' = any (v_fates) then
    insert into sluice.workflow_unplaced (run, node, stream, in_code) select run, node, stream, true from unnest(v_runs, v_nodes, v_fates, v_streams) u(run, node, fate, stream) where fate = 'u'
    on conflict do nothing;
    -- Counted as made: who is rung to claim them finds that they are to be placed.
    streams := streams || array(select distinct stream from unnest(v_fates, v_streams) u(fate, stream) where fate = 'u');
    made := made + (select count(*) from unnest(v_fates) f where f = 'u');
  end if;

  select array_agg(u.run), array_agg(u.node) into over_runs, over_nodes from unnest(v_runs, v_nodes, v_fates) u(run, node, fate) where u.fate in ('k', 'x', 'f');
  for i in 1..cardinality(v_runs) loop
    continue when v_fates[i] not in ('e', 'w', 's', 'v');
    v_state := case when v_fates[i] = 'e' then sluice.workflow_begin_each(v_runs[i], v_nodes[i], least(v_room, 1000)) else sluice.workflow_begin(v_runs[i], v_nodes[i]) end;
    if v_state in ('s', 'f') then
      over_runs := over_runs || v_runs[i]; over_nodes := over_nodes || v_nodes[i];
    elsif v_state = 'u' then
      streams := streams || v_streams[i]; made := made + 1;
    elsif v_fates[i] = 'e' and v_state = 'r' then
      v_total := (select n.total from sluice.workflow_node n where n.run = v_runs[i] and n.node = v_nodes[i]);
      -- guard: few items at once -> test/postgres/workflow/standing.test.ts: "of many fan-outs that begin at once 5,000 items are made, the rest by transactions of their own"
      joined := true; streams := streams || v_streams[i]; made := made + v_total; /* guard:few */ v_room := v_room - v_total; /* end */
    end if;
  end loop;
end $$;
