-- Removes a limit that no code uses any more. Returns false if there is none of that name. Tasks that still carry it
-- pass it freely: a lane or gate without its limit limits nothing. Takes the barrier exclusively.
create or replace function sluice.remove_limit(p_name text) returns boolean language plpgsql as $$
declare
  v_id int;
begin
  perform sluice.barrier_exclusive();
  delete from sluice.limits where name = p_name returning id into v_id;
  if not found then return false; end if;
  update sluice.contract set gate = 0 where gate = v_id;
  update sluice.contract set limit_ids = array_remove(limit_ids, v_id) where limit_ids @> array[v_id];
  update sluice.stream set gate = 0 where id = any (array(
    select s.id from sluice.stream s where s.gate = v_id order by s.id for update));
  delete from sluice.gate where id = v_id;
  delete from sluice.credit where gate = v_id;
  perform sluice.note_returned(array[v_id]);
  delete from sluice.gate_stream where gate = v_id;
  perform sluice.follow_change(v_id);
  perform sluice.ring(array(select id from sluice.stream), 50);
  return true;
end $$;
