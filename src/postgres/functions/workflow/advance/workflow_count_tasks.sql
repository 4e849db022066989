-- Adds tasks that ended to the counters of their nodes, by how they ended. p_firsts: the first that failed, else the
-- first that was cancelled. The caller has locked the runs in an earlier statement. Returns the nodes that are over by
-- it, whether all of these succeeded, and the nodes that are to be given up because of it.
create or replace function sluice.workflow_count_tasks(
  p_runs bigint[], p_nodes smallint[], p_succeeded int[], p_failed int[], p_cancelled int[], p_firsts bigint[],
  out over_runs bigint[], out over_nodes smallint[], out all_succeeded boolean,
  out failing_runs bigint[], out failing_nodes smallint[]
) language plpgsql /* settings: index plans */ as $$
declare v_lanes bigint[];
begin
  with counted as (
    update sluice.workflow_node n
    set succeeded = n.succeeded + c.s, failed = n.failed + c.f, cancelled = n.cancelled + c.c,
      failing = n.failing or n.policy = 'failFast' and c.f + c.c > 0,
      state = case
        when n.total > n.succeeded + n.failed + n.cancelled + c.s + c.f + c.c then n.state
        when n.policy = 'collect' and not (select r.stopping from sluice.workflow_run r where r.id = n.run)
          then 'succeeded'
        when n.policy <> 'collect' and n.failed + c.f > 0 then 'failed'
        when n.cancelled + c.c > 0 then 'cancelled'
        else 'succeeded' end,
      outcome = case when n.policy in ('failFast', 'finish') then case
        when n.failed + c.f > 0 then sluice.workflow_items_failed(n.failed + c.f, n.total, n.outcome, c.first)
        when n.cancelled + c.c > 0 then coalesce(n.outcome, (
          select json_build_object('reason', d.outcome -> 'reason') from sluice.done d where d.id = c.first limit 1
        )) end end,
      finished_at = case
        when n.total = n.succeeded + n.failed + n.cancelled + c.s + c.f + c.c then sluice.clock() end
    from (
      select x.tid, x.failing, u.*
      from unnest(p_runs, p_nodes, p_succeeded, p_failed, p_cancelled, p_firsts) u(run, node, s, f, c, first)
      cross join lateral (
        select ctid as tid, k.failing from sluice.workflow_node k
        where k.run = u.run and k.node = u.node and k.state = 'running' limit 1
      ) x
    ) c
    where n.ctid = c.tid
    returning n.run, n.node, n.state, n.finished_at is not null as over, n.failing and not c.failing as fails,
      case when n.cancelled > 0 then n.lane end as lane
  )
  select array_agg(run) filter (where over), array_agg(node) filter (where over),
    bool_and(state = 'succeeded') filter (where over),
    array_agg(run) filter (where fails and not over), array_agg(node) filter (where fails and not over),
    array_agg(lane) filter (where over and lane is not null)
  into over_runs, over_nodes, all_succeeded, failing_runs, failing_nodes, v_lanes
  from counted;
  -- An item that is cancelled while it waits at a window frees nothing, so the window's row may be left: mark it dirty.
  -- guard: a window goes with its node -> test/postgres/workflow/operate.test.ts: "a window without waiting items leaves no row behind"
  if /* guard:window */ v_lanes is not null /* end */ then
    insert into sluice.dirty (lane, limit_id) select l, sluice.window_limit() from unnest(v_lanes) l;
  end if;
end $$;
