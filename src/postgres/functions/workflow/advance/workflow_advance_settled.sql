-- Ends the settling part of a step: advances the runs of what it settled (p_ids, all succeeded) and acts on notes.
-- Wakes workers for what this step cannot claim itself: it serves p_streams and claims at most p_n. Returns whether new
-- tasks joined a window, and whether nodes are to be placed.
create or replace function sluice.workflow_advance_settled(
  p_ids bigint[], p_streams int[], p_n int, out joined boolean, out unplaced boolean
) language plpgsql /* settings: index plans */ as $$
declare v record; v_streams int[]; v_made int := 0;
begin
  joined := false;
  if exists (select from sluice.workflow_note) then
    v := sluice.workflow_process_notes(100, p_ids);
    joined := v.joined;
    v_made := v.made;
    v_streams := v.streams;
  elsif p_ids is not null then
    v := sluice.workflow_ended(p_ids);
    joined := v.joined;
    v_made := v.made;
    v_streams := v.streams;
  end if;
  if v_made > 0 and exists (select from sluice.worker where asleep) then
    v_streams := case
      when v_made >= p_n then v_streams
      else array(select x from unnest(v_streams) x where x <> all (p_streams)) end;
    if v_streams <> '{}' then
      perform sluice.ring(v_streams, v_made);
    end if;
  end if;
  unplaced := exists (select from sluice.workflow_unplaced u where not u.in_code)
    or exists (select from sluice.workflow_unplaced u where u.in_code and u.stream = any (p_streams));
end $$;
