-- Describes that no live worker serves a stream. elsewhere: queues in which workers serve its type, in case one of them
-- was meant.
create or replace function sluice.explain_nobody(p_stream sluice.stream, p_leaving int) returns json
language sql stable as $$
  select json_build_object(
    'kind', 'noWorker', 'leaving', p_leaving, 'elsewhere', coalesce(json_agg(o.queue order by o.queue), '[]'))
  from (
    select o.queue from sluice.stream o
    where o.type = p_stream.type and o.id <> p_stream.id
      and exists (
        select from sluice.worker w
        where w.streams @> array[o.id] and w.expires_at > sluice.clock() and not w.draining)
    order by o.queue
    limit 10) o
$$;
