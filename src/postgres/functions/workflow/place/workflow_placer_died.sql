-- Whether a process died while it ran the user's code for this node, whose row the caller holds. If so, all nodes that
-- the process held are counted as tried and put off: from then on they are tried one by one, so that the innocent ones
-- are placed and the guilty one does not stand in front of them. The caller commits that and takes again. Rows are
-- taken with SKIP LOCKED.
create or replace function sluice.workflow_placer_died(p_run bigint, p_node smallint) returns boolean
language plpgsql /* settings: index plans */ as $$
declare t record; v_any boolean := false;
begin
  for t in
    select x.* from sluice.workflow_trying x
    where exists (select from unnest(x.runs, x.nodes) k(run, node) where k.run = p_run and k.node = p_node)
    for update skip locked
  loop
    update sluice.workflow_unplaced u
    set tries = u.tries + 1,
      due_at = sluice.clock() + sluice.workflow_backoff(u.tries),
      died = case when t.worker is null then u.died else u.died || t.worker end
    where u.ctid = any (array(
      select x.ctid
      from unnest(t.runs, t.nodes) k(run, node)
      join sluice.workflow_unplaced x on x.run = k.run and x.node = k.node
      for update of x skip locked));
    delete from sluice.workflow_trying x where x.id = t.id;
    v_any := true;
  end loop;
  return v_any;
end $$;
