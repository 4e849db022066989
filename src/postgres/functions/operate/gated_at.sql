-- Returns the address of a task's row in gated: by its place without lanes, else by the index of tasks with lanes.
create or replace function sluice.gated_at(p_id bigint, p_stream int, p_gate int, p_rank smallint, p_lanes bigint[])
returns tid language plpgsql stable set enable_seqscan = off set enable_bitmapscan = off as $$
begin
  if p_lanes is not null then
    return (select g.ctid from sluice.gated g where g.id = p_id and g.lanes is not null limit 1);
  end if;
  return (
    select g.ctid from sluice.gated g
    where g.stream = p_stream and g.gate = p_gate and g.rank = p_rank and g.turn = sluice.own_turn(p_id)
    limit 1);
end $$;
