-- Enqueues these ticks and moves the schedule on to p_next_at, or does nothing: 'fired', 'taken' when it
-- is not as it was seen, 'refused' when the tasks cannot be enqueued as they are. Then it says why, and
-- is looked at again in half a minute: its ticks are not lost, and it is in nobody's way.
create or replace function sluice.fire_schedule(p_name text, p_revision bigint, p_ticks text[], p_next_at timestamptz, p_mark text, out answer text, out trouble text)
language plpgsql as $$
declare v sluice.schedule; v_ids bigint[];
begin
  select * into v from sluice.schedule s where s.name = p_name /* guard:revision */ and s.revision = p_revision /* end */ and s.next_at <= sluice.clock() for update skip locked;
  if not found then answer := 'taken'; return; end if;
  begin
    v_ids := sluice.enqueue_ticks(v, p_ticks, p_mark, true);
  exception when sqlstate 'SLUIC' then
    answer := 'refused'; trouble := sqlerrm;
    update sluice.schedule s set due_at = sluice.clock() + interval '30 seconds', trouble = fire_schedule.trouble, revision = default where s.name = p_name;
    return;
  end;
  update sluice.schedule s set next_at = p_next_at, due_at = p_next_at, trouble = null, revision = default,
    last_at = coalesce(p_ticks[cardinality(p_ticks)]::timestamptz, s.last_at), last_task = coalesce(v_ids[cardinality(v_ids)], s.last_task)
  where s.name = p_name;
  answer := 'fired';
end $$;
