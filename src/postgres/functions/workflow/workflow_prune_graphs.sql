-- Deletes graphs older than p_ms that no run refers to any more and that are not the last declared of their name, at
-- most p_max. A later start of one finds that it is unknown, and declares it again. Takes the advisory lock and the row
-- of each graph only if they are free. Returns how many.
create or replace function sluice.workflow_prune_graphs(p_ms bigint, p_max int) returns int
language plpgsql /* settings: index plans */ as $$
declare v_id int; v_n int := 0;
begin
  for v_id in
    select g.id
    from sluice.workflow_graph g
    where g.created_at < sluice.clock() - p_ms * interval '1 millisecond'
      and exists (select from sluice.workflow_graph k where k.name = g.name and k.declared > g.declared)
      and not exists (select from sluice.workflow_run r where r.graph = g.id)
    order by g.id limit p_max
  loop
    continue when not pg_try_advisory_xact_lock('sluice.workflow_graph'::regclass::oid::int, v_id);
    -- A transaction that declares it just now is not waited for: it may start a run next, and wait for us.
    perform from sluice.workflow_graph g where g.id = v_id for update skip locked;
    continue when not found;
    -- Looked up again with a later snapshot: a run may have been committed before we had the lock.
    delete from sluice.workflow_graph g
    where g.id = v_id
      and not exists (select from sluice.workflow_run r where r.graph = v_id)
      and exists (select from sluice.workflow_graph k where k.name = g.name and k.declared > g.declared);
    continue when not found;
    delete from sluice.workflow_step where graph = v_id;
    v_n := v_n + 1;
  end loop;
  -- Last: starts wait from here to the commit.
  perform sluice.workflow_deactivate();
  return v_n;
end $$;
