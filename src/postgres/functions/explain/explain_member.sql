-- Returns the run, node and item that a task belongs to, or null.
create or replace function sluice.explain_member(p_id bigint) returns json language plpgsql stable as $$
begin
  return (
    select json_build_object(
      'run', y.run::text, 'node', coalesce(p.name, r.name), 'item', case when n.kind = 'each' then y.item end)
    from sluice.workflow_task y
    join sluice.workflow_run r on r.id = y.run
    join sluice.workflow_node n on n.run = y.run and n.node = y.node
    left join sluice.workflow_step p on p.graph = r.graph and p.node = y.node
    where y.id = p_id);
end $$;
