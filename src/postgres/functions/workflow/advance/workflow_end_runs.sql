-- Takes one open node off a run for each time that p_runs names it, and ends the runs that have none left. The caller
-- holds the locks of the runs. Runs under the planner settings of workflow_cascade.
create or replace function sluice.workflow_end_runs(p_runs bigint[]) returns void language plpgsql as $$
declare v_over bigint[]; v_parents bigint[];
begin
  if (select count(distinct run) = count(*) from unnest(p_runs) run) then
    -- One node each, the most common case: runs are found by a list of row addresses, without a join.
    with ended as (
      update sluice.workflow_run r
      set open = r.open - 1,
        state = case
          when r.open > 1 then r.state
          when r.stopping then 'cancelled'
          when not exists (
            select from sluice.workflow_node n where n.run = r.id and sluice.workflow_is_unsuccessful(n.state)
          ) then 'succeeded'
          else sluice.workflow_verdict(r.id, r.graph) end,
        finished_at = case when r.open = 1 then sluice.clock() end
      where r.ctid = any (array(
        select x.tid
        from unnest(p_runs) u(run)
        cross join lateral (select ctid as tid from sluice.workflow_run where id = u.run limit 1) x))
      returning r.id, r.open, r.parent
    )
    select array_agg(id), array_agg(parent) filter (where parent is not null) into v_over, v_parents
    from ended where open = 0;
  else
    with ended as (
      update sluice.workflow_run r
      set open = r.open - c.n,
        state = case
          when r.open > c.n then r.state
          when r.stopping then 'cancelled'
          when not exists (
            select from sluice.workflow_node n where n.run = r.id and sluice.workflow_is_unsuccessful(n.state)
          ) then 'succeeded'
          else sluice.workflow_verdict(r.id, r.graph) end,
        finished_at = case when r.open = c.n then sluice.clock() end
      from (
        select x.tid, u.n
        from (select run, count(*)::smallint as n from unnest(p_runs) run group by run) u
        cross join lateral (select ctid as tid from sluice.workflow_run where id = u.run limit 1) x
      ) c
      where r.ctid = c.tid
      returning r.id, r.open, r.parent
    )
    select array_agg(id), array_agg(parent) filter (where parent is not null) into v_over, v_parents
    from ended where open = 0;
  end if;
  if v_over is not null then
    perform sluice.workflow_finish_runs(v_over, v_parents);
  end if;
end $$;
