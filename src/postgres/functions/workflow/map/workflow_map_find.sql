-- A fan-out of a handler, if it exists: its run and state, and the stream and the digest of the inputs it was made of.
create or replace function sluice.workflow_map_find(p_parent bigint, p_name text)
returns table (run bigint, stream int, digest text, state text) language sql stable as $$
  select r.id, n.stream, r.input #>> '{}',
    r.state::text
  from sluice.workflow_run r
  join sluice.workflow_node n on n.run = r.id and n.node = 1
  where r.parent = p_parent and r.name = p_name
$$;
