-- Returns streams with the reason why no worker claims from them now: held_by, null if one does.
create or replace function sluice.queue_streams(p_streams int[])
returns table (id int, type text, gate int, served boolean, held_by text) language sql stable as $$
  select s.id, s.type, s.gate, x.live > 0,
    case
      when s.paused then 'paused'
      when x.live = 0 then 'noWorker'
      when x.available > 0 then null
      when x.silent > 0 then 'silent'
      when x.stopped > 0 then 'pressure'
      else 'busy'
    end
  from sluice.stream s
  cross join lateral sluice.explain_workers(array[s.id]) x
  where s.id = any (p_streams)
$$;
