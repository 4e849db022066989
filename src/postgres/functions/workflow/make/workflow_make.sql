-- Making: tasks of nodes, and what a node does when it begins. All of it is called with the run's row locked.

-- Creates the tasks of nodes with the fate make_task, in rows that the caller has looked up, and lets the nodes run.
-- Refuses if an input cannot be rendered. The value of a task that succeeded is read here and not by workflow_value:
-- most references are to such values, and a call for each costs more than the task. Returns how many.
create or replace function sluice.workflow_make(
  p_runs bigint[], p_nodes smallint[], p_tids tid[], p_graphs int[], p_bytes int[], p_streams int[],
  p_fates sluice.fate[], p_terms sluice.workflow_made[]
) returns int language plpgsql /* settings: index plans */ as $$
declare v_made int;
begin
  with item as materialized (
    select nextval('sluice.task_id') as id, u.run, u.node, u.tid, u.stream, coalesce(s.rank, t.rank) as rank,
      coalesce(s.attempts, t.attempts) as attempts, t.gate,
      sluice.workflow_fit(case
        when cardinality(s.ref_nodes) = 0 then s.parts[1]
        when cardinality(s.ref_nodes) = 1 then s.parts[1] || coalesce((
          select coalesce((d.outcome #> s.ref_paths[1]::text[])::text, 'null')
          from sluice.workflow_node k
          cross join lateral (select outcome from sluice.done where id = k.task limit 1) d
          where k.run = u.run and k.node = s.ref_nodes[1] and k.state = 'succeeded' and k.kind = 'task'
            and sluice.workflow_cut(d.outcome) is not true
        ), sluice.workflow_value(u.run, s.ref_nodes[1], s.ref_paths[1]::text[], u.bytes_max)) || s.parts[2]
        -- Many are counted before they are joined.
        when cardinality(s.ref_nodes) > 16 then
          sluice.workflow_render(u.run, s.parts, s.ref_nodes, s.ref_paths, u.bytes_max)
        else s.parts[1] || (
          select string_agg(case
              when f.node = 0 then coalesce((
                (select k.input from sluice.workflow_run k where k.id = u.run) #> f.path::text[])::text, 'null')
              when x.state = 'succeeded' and x.kind = 'task' and sluice.workflow_cut(x.outcome) is not true then
                coalesce((x.outcome #> f.path::text[])::text, 'null')
              else sluice.workflow_value(u.run, f.node, f.path::text[], u.bytes_max) end
            || s.parts[f.i + 1], '' order by f.i)
          from unnest(s.ref_nodes, s.ref_paths) with ordinality f(node, path, i)
          left join lateral (
            select k.state, k.kind, d.outcome
            from sluice.workflow_node k
            left join lateral (select outcome from sluice.done where id = k.task limit 1) d on true
            where k.run = u.run and k.node = f.node limit 1
          ) x on true) end, u.bytes_max)::json as input
    from unnest(p_runs, p_nodes, p_tids, p_graphs, p_bytes, p_streams, p_fates)
      u(run, node, tid, graph, bytes_max, stream, fate)
    join unnest(p_terms) t on t.stream = u.stream
    cross join lateral (select * from sluice.workflow_step k where k.graph = u.graph and k.node = u.node limit 1) s
    where u.fate = 'make_task'
  ), tasks as (
    insert into sluice.task (id, stream, rank, attempts_max, gate, input)
    select id, stream, rank, attempts, gate, input from item
  ), readies as (
    insert into sluice.ready (id, stream, rank, attempt, turn)
    select id, stream, rank, 0, sluice.own_turn(id) from item where gate = 0
  ), gates as (
    insert into sluice.gated (id, stream, gate, rank, attempt, turn)
    select id, stream, gate, rank, 0, sluice.own_turn(id) from item where gate <> 0
  ), members as (
    insert into sluice.workflow_task (id, run, node, item) select id, run, node, 0 from item
  ), running as (
    update sluice.workflow_node n
    set state = 'running', blocked = 0, task = i.id, stream = i.stream, total = 1, outcome = null,
      started_at = sluice.clock()
    from item i where n.ctid = i.tid
  )
  select count(*) into v_made from item;
  return v_made;
end $$;
