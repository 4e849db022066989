-- Decides what becomes of the nodes that workflow_advance_nodes is called for (p_runs, p_nodes, p_ended_deps and
-- p_all_succeeded as there). Reads only, in one statement, later than the one that locked the runs; runs under the
-- planner settings of workflow_advance_nodes.
--
-- Returns lists with one entry per node: its row, how many dependencies it still waits for, its fate, and what its run
-- and step say. types: the streams of nodes with the fate make_task.
--
-- A dependency that is neutral (see workflow_meets) counts as met only beside one that is. A branch that was taken
-- meets nothing by itself: a node in it without what it needs is skipped, as it is outside. Where all that a node needs
-- has just succeeded together, most often a single dependency, nothing is looked up.
create or replace function sluice.workflow_fates(
  p_runs bigint[], p_nodes smallint[], p_ended_deps smallint[], p_all_succeeded boolean,
  out runs bigint[], out nodes smallint[], out tids tid[], out lefts smallint[], out fates sluice.fate[],
  out streams int[], out graphs int[], out bytes int[], out types int[]
) language plpgsql as $$
begin
  with hit as (
    select h.run, h.node, r.graph, r.paused, r.bytes_max, h.hits
    from unnest(p_runs, p_nodes, p_ended_deps) h(run, node, hits)
    cross join lateral (select graph, paused, bytes_max from sluice.workflow_run where id = h.run limit 1) r
    where p_ended_deps is not null
    union all
    select h.run, x.node, r.graph, r.paused, r.bytes_max, count(*)::smallint
    from unnest(p_runs, p_nodes) h(run, node)
    cross join lateral (select graph, paused, bytes_max from sluice.workflow_run where id = h.run limit 1) r
    cross join lateral (
      select successors from sluice.workflow_step k where k.graph = r.graph and k.node = h.node limit 1
    ) k
    cross join lateral unnest(k.successors) x(node)
    where p_ended_deps is null
    group by 1, 2, 3, 4, 5
  ), judged as (
    select u.run, u.node, n.tid, n.blocked - u.hits as left_over, s.stream, u.graph, u.bytes_max,
      case when n.blocked > u.hits then 'blocked' else coalesce(
        case when u.hits < cardinality(s.deps)
            or u.hits > 0 and not (p_all_succeeded and 'success' = all (s.dep_on)) then (
          select case
            when bool_or(x.verdict = 'bad') then 'skipped_by_failure'
            when bool_or(x.verdict = 'unmet')
              or not bool_or(x.verdict = 'met') filter (where x.dep_on in ('success', 'end'))
            then 'skipped_by_condition'
            end::sluice.fate
          from (
            select d.dep_on, sluice.workflow_meets(d.dep_on, k.state, k.outcome) as verdict
            from unnest(s.deps, s.dep_on) d(node, dep_on)
            cross join lateral (
              select state, outcome from sluice.workflow_node k where k.run = u.run and k.node = d.node limit 1
            ) k
          ) x) end,
        case
          when u.paused then 'held'
          when n.state = 'held' and s.kind = 'task'
            and exists (select from sluice.workflow_unplaced x where x.run = u.run and x.node = u.node) then 'placing'
          when s.kind = 'task' then 'make_task'
          when s.kind = 'each' then 'make_items'
          else 'begin' end::sluice.fate) end as fate
    from hit u
    cross join lateral (
      select ctid as tid, blocked, state from sluice.workflow_node k
      where k.run = u.run and k.node = u.node and k.state in ('pending', 'held') limit 1
    ) n
    cross join lateral (
      select kind, stream, deps, dep_on from sluice.workflow_step k where k.graph = u.graph and k.node = u.node limit 1
    ) s
  )
  select array_agg(z.run), array_agg(z.node), array_agg(z.tid), array_agg(z.left_over), array_agg(z.fate),
    array_agg(z.stream), array_agg(z.graph), array_agg(z.bytes_max),
    array_agg(distinct z.stream) filter (where z.fate = 'make_task')
  into runs, nodes, tids, lefts, fates, streams, graphs, bytes, types
  from judged z;
end $$;
