-- Returns that a task is a suspect: how often its workers crashed, and the worker that empties itself for it. Null if
-- it is none.
create or replace function sluice.explain_suspect(p_id bigint) returns json language plpgsql stable as $$
begin
  return (
    select json_build_object(
      'kind', 'suspect', 'crashes', coalesce(cardinality(h.workers), 3), 'worker', y.name)
    from sluice.suspect c
    left join sluice.crash h on h.id = c.id
    left join sluice.worker y on y.id = c.reserved_by and y.expires_at > sluice.clock()
    where c.id = p_id);
end $$;
