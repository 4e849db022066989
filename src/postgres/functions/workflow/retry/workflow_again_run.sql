-- Brings back tasks of nodes that run again: at most p_max, in the order of their items, looking at no more than twenty
-- times as many. The caller holds the run's lock; this locks the lanes of its windows. Never waits for the fan-outs of
-- these tasks, so the caller may hold any other locks: a fan-out that another transaction holds, or that is being
-- cancelled, keeps its task back until the next call. Returns how many came back, at least p_max while the next call
-- would find more.
create or replace function sluice.workflow_again_run(p_run bigint, p_max int) returns int
language plpgsql /* settings: index plans */ as $$
declare a record; f record; v_lanes bigint[]; b record; v_n int := 0; v_more boolean := false;
begin
  -- A window that was shut when its node ended is open again. Lanes by id, once.
  v_lanes := array(
    select n.lane
    from sluice.workflow_again x
    join sluice.workflow_node n on n.run = x.run and n.node = x.node
    where x.run = p_run and x.item = -1 and n.lane is not null);
  if v_lanes <> '{}' then
    perform from sluice.lane l where l.id = any (v_lanes) order by l.id for update;
    update sluice.lane l set cap = sluice.lane_cap(l.id, sluice.window_limit()) where l.id = any (v_lanes);
  end if;
  for a in
    select x.*, n.total
    from sluice.workflow_again x
    join sluice.workflow_node n on n.run = x.run and n.node = x.node
    where x.run = p_run order by x.node
  loop
    if v_n >= p_max then
      v_more := true;
      exit;
    end if;
    select * into f from sluice.workflow_again_find(
      p_run, a.node, a.total, a.item, a.failed + a.cancelled - cardinality(a.pending), cardinality(a.pending),
      p_max, p_max - v_n);
    select * into b from sluice.workflow_again_tasks(a.pending || f.ids);
    v_n := v_n + b.back;
    if f.last is null and b.kept = '{}' then
      delete from sluice.workflow_again where run = p_run and node = a.node;
    else
      update sluice.workflow_again x
      set item = f.last, pending = b.kept, failed = x.failed - b.failed, cancelled = x.cancelled - b.cancelled
      where x.run = p_run and x.node = a.node;
      -- Behind p_max tasks that are kept back nothing is searched: the next call would only ask for these again.
      v_more := v_more or f.last is not null and cardinality(b.kept) < p_max;
    end if;
  end loop;
  return case when v_more then greatest(v_n, p_max) else v_n end;
end $$;
