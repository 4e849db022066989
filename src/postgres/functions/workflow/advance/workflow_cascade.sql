-- Nodes are over, p_good: all of them succeeded; the caller holds the locks of their runs. Whatever follows from it is done, until nothing
-- changes: of a graph of n nodes after at most n rounds, because every round ends at least one.
create or replace function sluice.workflow_cascade(p_runs bigint[], p_nodes smallint[], p_good boolean default false, out streams int[], out made int, out joined boolean)
language plpgsql /* settings: index plans */ as $$
declare v_runs bigint[] := p_runs; v_nodes smallint[] := p_nodes; v_good boolean := p_good; v_all bigint[]; g record; v_over bigint[]; v_parents bigint[];
begin
  made := 0; joined := false;
  while v_runs is not null loop
    v_all := v_all || v_runs;
    select * into g from sluice.workflow_go(v_runs, v_nodes, null, v_good);
    v_good := false;
    made := made + g.made; joined := joined or g.joined; streams := streams || g.streams;
    v_runs := g.over_runs; v_nodes := g.over_nodes;
  end loop;
  if (select count(distinct run) = count(*) from unnest(v_all) run) then
    with ended as (
      update sluice.workflow_run r set open = r.open - 1, state = case when r.open > 1 then r.state when r.stopping then 'c' when not exists (select from sluice.workflow_node n where n.run = r.id and n.state in ('f', 'c')) then 's' else sluice.workflow_verdict(r.id, r.graph) end,
        finished_at = case when r.open = 1 then sluice.clock() end
      where r.ctid = any (array(select x.tid from unnest(v_all) u(run) cross join lateral (select ctid as tid from sluice.workflow_run where id = u.run limit 1) x)) returning r.id, r.open, r.parent
    )
    select array_agg(id), array_agg(parent) filter (where parent is not null) into v_over, v_parents from ended where open = 0;
  else
    with ended as (
      update sluice.workflow_run r set open = r.open - c.n,
        state = case when r.open > c.n then r.state when r.stopping then 'c' when not exists (select from sluice.workflow_node n where n.run = r.id and n.state in ('f', 'c')) then 's' else sluice.workflow_verdict(r.id, r.graph) end,
        finished_at = case when r.open = c.n then sluice.clock() end
      from (select x.tid, u.n from (select run, count(*)::smallint as n from unnest(v_all) run group by run) u
        cross join lateral (select ctid as tid from sluice.workflow_run where id = u.run limit 1) x) c
      where r.ctid = c.tid returning r.id, r.open, r.parent
    )
    select array_agg(id), array_agg(parent) filter (where parent is not null) into v_over, v_parents from ended where open = 0;
  end if;
  if v_over is not null then perform sluice.workflow_over(v_over, v_parents); end if;
end $$;
