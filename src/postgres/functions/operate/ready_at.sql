-- Returns the address of a task's row in ready: by its place without lanes, else by the index of tasks with lanes.
create or replace function sluice.ready_at(p_id bigint, p_stream int, p_rank smallint, p_lanes bigint[])
returns tid language plpgsql stable set enable_seqscan = off set enable_bitmapscan = off as $$
begin
  if p_lanes is not null then
    return (select r.ctid from sluice.ready r where r.id = p_id and r.lanes is not null limit 1);
  end if;
  return (
    select r.ctid from sluice.ready r
    where r.stream = p_stream and r.rank = p_rank and r.turn = sluice.own_turn(p_id)
    limit 1);
end $$;
