-- Explains what holds the tasks of a queue: how many are held by each reason, and one of them to ask explain about.
-- Each task is counted once, by the reason that explain would name first; tasks that are due, or about to rejoin
-- their line, count as next. At most 100,000 rows of each type are counted, or of the queue where tables do not know
-- the type; `more` tells where there may be more. Scans keep their order, so that repeated calls give the same answer.
-- It only reads, from one snapshot, like explain.
create or replace function sluice.explain_queue(p_queue text) returns json
language plpgsql stable set jit = off set max_parallel_workers_per_gather = 0 set synchronize_seqscans = off as $$
declare
  v_streams int[] := array(select s.id from sluice.stream s where s.queue = p_queue order by s.id);
  v_now timestamptz := sluice.clock();
  v_found json[];
  v_running json;
  w record;
begin
  if not exists (select from sluice.queue q where q.name = p_queue) then
    perform sluice.refuse('unknown_queue', format('there is no queue named %L; the queues are %s', p_queue, coalesce((
      select string_agg(quote_literal(q.name), ', ' order by q.name)
      from (select name from sluice.queue order by name limit 20) q), 'none yet')));
  end if;
  select * into w from sluice.explain_workers(v_streams);
  v_found := sluice.queue_reasons(v_streams, v_now);
  select json_agg(json_build_object('type', s.type, 'count', x.n) order by x.n desc, s.type) into v_running
  from (
    select t.stream, count(*) as n
    from sluice.running r
    cross join lateral (select k.stream from sluice.task k where k.id = r.id limit 1) t
    group by t.stream) x
  join sluice.stream s on s.id = x.stream
  where s.queue = p_queue;
  return json_build_object(
    'queue', p_queue, 'at', v_now, 'paused', (select q.paused from sluice.queue q where q.name = p_queue),
    'workers', json_build_object(
      'live', w.live, 'leaving', w.leaving, 'silent', w.silent, 'stopped', w.stopped,
      'capacity', w.capacity, 'available', w.available),
    'running', coalesce(v_running, '[]'),
    'reasons', coalesce(array_to_json(v_found[:100]), '[]'),
    'reasonsLeft', greatest(0, coalesce(cardinality(v_found), 0) - 100));
end $$;
