-- Enqueues these ticks and moves the schedule on to p_next_at, or does nothing. Locks the schedule's row, or skips it.
-- answer: 'fired'; 'taken' when the schedule has changed since it was read; 'refused' when its tasks cannot be
-- enqueued as they are. Then trouble says why, and the schedule is due again in 30 seconds: its ticks are not lost, and
-- it does not delay other schedules.
create or replace function sluice.fire_schedule(
  p_name text, p_revision bigint, p_ticks text[], p_next_at timestamptz, p_mark text,
  out answer text, out trouble text)
language plpgsql as $$
declare
  v sluice.schedule;
  v_ids bigint[];
begin
  select * into v from sluice.schedule s
  where s.name = p_name /* guard:revision */ and s.revision = p_revision /* end */ and s.next_at <= sluice.clock()
  for update skip locked;
  if not found then
    answer := 'taken';
    return;
  end if;
  begin
    v_ids := sluice.enqueue_ticks(v, p_ticks, p_mark, true);
  exception when sqlstate 'SLUIC' then
    answer := 'refused';
    trouble := sqlerrm;
    update sluice.schedule s set
      due_at = sluice.clock() + interval '30 seconds',
      trouble = fire_schedule.trouble,
      revision = default
    where s.name = p_name;
    return;
  end;
  update sluice.schedule s set
    next_at = p_next_at,
    due_at = p_next_at,
    trouble = null,
    revision = default,
    last_at = coalesce(p_ticks[cardinality(p_ticks)]::timestamptz, s.last_at),
    last_task = coalesce(v_ids[cardinality(v_ids)], s.last_task)
  where s.name = p_name;
  answer := 'fired';
end $$;
