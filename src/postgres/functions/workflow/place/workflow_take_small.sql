-- workflow_take for many nodes of one task each that were never tried, with their inputs: at most p_max, and until
-- their inputs have p_bytes. Leaves out a node that cannot be rendered, or with which a process died. A row without a
-- run: there are others, such as fan-outs and nodes that were put off, for workflow_take.
create or replace function sluice.workflow_take_small(p_streams int[], p_max int, p_bytes int)
returns table (run bigint, node smallint, stream int, priority int, attempts int, input text)
language plpgsql /* settings: index plans */ as $$
declare
  v_stream int; v_runs bigint[]; v_nodes smallint[]; v_died text[]; v_now timestamptz := sluice.clock();
  v_seen int := 0; v_taken int := 0; v_bytes int := 0;
begin
  perform sluice.workflow_limit_idle();
  for v_stream in select s from unnest(p_streams) s order by random() loop
    select array_agg(x.run), array_agg(x.node) into v_runs, v_nodes
    from (
      select u.run, u.node from sluice.workflow_unplaced u
      where u.in_code and u.stream = v_stream and u.due_at = '-infinity'
      order by u.run, u.node limit p_max - v_seen for update skip locked
    ) x;
    -- Read after the rows were locked: what is still being tried then belongs to a process that died.
    v_died := array(
      select k.run || ':' || k.node
      from sluice.workflow_trying t
      cross join lateral unnest(t.runs, t.nodes) k(run, node)
      where t.runs && v_runs);
    for i in 1..coalesce(cardinality(v_runs), 0) loop
      v_seen := v_seen + 1;
      continue when v_bytes >= p_bytes;
      -- guard: a batch leaves out what a process died with -> test/postgres/workflow/place.test.ts: "the nodes of a batch are tried one by one after a crash, and the innocent ones are placed"
      /* guard:died */ continue when v_runs[i] || ':' || v_nodes[i] = any (v_died); /* end */
      begin
        select n.run, n.node, n.stream, -s.rank, s.attempts,
          sluice.workflow_render(n.run, s.parts, s.ref_nodes, s.ref_paths, r.bytes_max)
        into run, node, stream, priority, attempts, input
        from sluice.workflow_node n
        join sluice.workflow_run r on r.id = n.run
        join sluice.workflow_step s on s.graph = r.graph and s.node = n.node
        where n.run = v_runs[i] and n.node = v_nodes[i] and n.state = 'placing' and n.kind = 'task';
        continue when not found;
      exception when others then
        continue;
      end;
      v_taken := v_taken + 1;
      v_bytes := v_bytes + octet_length(input);
      return next;
    end loop;
    exit when v_seen >= p_max;
  end loop;
  if v_taken < v_seen or exists (
    select
    from unnest(p_streams) s
    cross join lateral (
      select from sluice.workflow_unplaced u
      where u.in_code and u.stream = s and u.due_at between 'epoch' and v_now limit 1
    ) x
  ) then
    run := null;
    return next;
  end if;
end $$;
