-- Returns the stream of a queue and a type, and creates it, with its queue, if there is none.
create or replace function sluice.declare_stream(p_queue text, p_type text) returns int language plpgsql as $$
declare
  v_id int;
begin
  select id into v_id from sluice.stream where queue = p_queue and type = p_type;
  if found then return v_id; end if;
  insert into sluice.queue (name) values (p_queue) on conflict do nothing;
  insert into sluice.stream (queue, type, gate, paused)
  select p_queue, p_type,
    coalesce((select gate from sluice.contract where type = p_type), 0),
    (select paused from sluice.queue where name = p_queue)
  on conflict do nothing;
  select id into v_id from sluice.stream where queue = p_queue and type = p_type;
  insert into sluice.gate_stream
  select c.gate, v_id from sluice.contract c where c.type = p_type and c.gate > 0
  on conflict do nothing;
  insert into sluice.gate_stream
  select g.id, v_id
  from sluice.contract c
  join sluice.gate g on g.id = any (c.limit_ids)
  where c.type = p_type
  on conflict do nothing;
  return v_id;
end $$;
