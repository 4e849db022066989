-- Decides what becomes of the nodes that workflow_go is called for (p_runs, p_nodes, p_hits and p_good as there). Reads
-- only, in one statement, later than the one that locked the runs; runs under the planner settings of workflow_go.
--
-- Returns lists with one entry per node: its row, how many dependencies it still waits for, its fate, and what its run
-- and step say. A fate is b (still blocked), k or x (skipped), h (held, because the run is paused), u (its tasks are to
-- be placed), or the kind of its step, which begins. types: the streams of nodes with the fate t.
--
-- A dependency is met, or refuses (bad: it failed; unmet: a condition says so), or is neutral: skipped by a condition,
-- which counts as met only beside one that is. A branch that was taken meets nothing by itself: a node in it without
-- what it needs is skipped, as it is outside. Where all that a node needs has just succeeded together, most often a
-- single dependency, nothing is looked up.
create or replace function sluice.workflow_fates(
  p_runs bigint[], p_nodes smallint[], p_hits smallint[], p_good boolean,
  out runs bigint[], out nodes smallint[], out tids tid[], out lefts smallint[], out fates "char"[],
  out streams int[], out graphs int[], out bytes int[], out types int[]
) language plpgsql as $$
begin
  with hit as (
    select h.run, h.node, r.graph, r.paused, r.bytes_max, h.hits
    from unnest(p_runs, p_nodes, p_hits) h(run, node, hits)
    cross join lateral (select graph, paused, bytes_max from sluice.workflow_run where id = h.run limit 1) r
    where p_hits is not null
    union all
    select h.run, x.node, r.graph, r.paused, r.bytes_max, count(*)::smallint
    from unnest(p_runs, p_nodes) h(run, node)
    cross join lateral (select graph, paused, bytes_max from sluice.workflow_run where id = h.run limit 1) r
    cross join lateral (
      select successors from sluice.workflow_step k where k.graph = r.graph and k.node = h.node limit 1
    ) k
    cross join lateral unnest(k.successors) x(node)
    where p_hits is null
    group by 1, 2, 3, 4, 5
  ), judged as (
    select u.run, u.node, n.tid, n.blocked - u.hits as left_over, s.stream, u.graph, u.bytes_max,
      case when n.blocked > u.hits then 'b' else coalesce(
        case when u.hits < cardinality(s.deps) or u.hits > 0 and not (p_good and 's' = all (s.dep_on)) then (
          select case
            when bool_or(x.fate = 'bad') then 'k'
            when bool_or(x.fate = 'unmet') or not bool_or(x.fate = 'met') filter (where x.dep_on in ('s', 'e')) then 'x'
            end::"char"
          from (
            select d.dep_on, case d.dep_on
              when 'e' then 'met'
              when 's' then case k.state when 's' then 'met' when 'x' then 'neutral' else 'bad' end
              when 'f' then case when k.state in ('f', 'c') then 'met' when k.state = 'k' then 'bad' else 'unmet' end
              else case
                when k.state = 's' then
                  case when (k.outcome::text = 'true') = (d.dep_on = 't') then 'met' else 'unmet' end
                when k.state = 'x' then 'unmet'
                else 'bad' end
              end as fate
            from unnest(s.deps, s.dep_on) d(node, dep_on)
            cross join lateral (
              select state, outcome from sluice.workflow_node k where k.run = u.run and k.node = d.node limit 1
            ) k
          ) x) end,
        case
          when u.paused then 'h'
          when n.state = 'h' and s.kind = 't'
            and exists (select from sluice.workflow_unplaced x where x.run = u.run and x.node = u.node) then 'u'
          else s.kind end) end::"char" as fate
    from hit u
    cross join lateral (
      select ctid as tid, blocked, state from sluice.workflow_node k
      where k.run = u.run and k.node = u.node and k.state in ('p', 'h') limit 1
    ) n
    cross join lateral (
      select kind, stream, deps, dep_on from sluice.workflow_step k where k.graph = u.graph and k.node = u.node limit 1
    ) s
  )
  select array_agg(z.run), array_agg(z.node), array_agg(z.tid), array_agg(z.left_over), array_agg(z.fate),
    array_agg(z.stream), array_agg(z.graph), array_agg(z.bytes_max),
    array_agg(distinct z.stream) filter (where z.fate = 't')
  into runs, nodes, tids, lefts, fates, streams, graphs, bytes, types
  from judged z;
end $$;
