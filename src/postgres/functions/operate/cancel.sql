-- Cancels tasks. Takes no lane lock and skips rows that are locked, so it may run in a user's transaction. Returns an
-- answer per id, in their order:
--   cancelled  it was not running, and is in history now
--   asked      it runs; its worker learns of it with the next heartbeat, and is notified to send one now
--   over       it had ended before
--   moving     it is between two states: call again
--   unknown    there is no such task
-- p_notes: leave notes for the runs that the tasks belong to. A caller that counts the tasks itself passes false.
create or replace function sluice.cancel(p_ids bigint[], p_reason text default null, p_notes boolean default true)
returns table (id bigint, answer text) language plpgsql /* settings: index plans */ as $$
#variable_conflict use_column
declare
  v_left bigint[] := p_ids;
  v_gone bigint[] := '{}';
  v_asked bigint[] := '{}';
  v_workers bigint[] := '{}';
  v record;
begin
  for v_try in 1..3 loop
    v_gone := v_gone || sluice.cancel_waiting(v_left, p_reason);
    select * into v from sluice.cancel_running(v_left, p_reason);
    v_asked := v_asked || v.asked;
    v_workers := v_workers || v.workers;
    -- Tasks that have ended or never existed are not between two states.
    v_left := array(
      select u.id
      from (select unnest(p_ids) except select unnest(v_gone) except select unnest(v_asked)) u(id)
      cross join lateral (select from sluice.task k where k.id = u.id limit 1) t
      left join lateral (select true as ended from sluice.done k where k.id = u.id limit 1) d on true
      where d.ended is null);
    exit when v_left = '{}';
    if v_try = 2 then perform pg_sleep(0.002); end if;
  end loop;
  perform sluice.tell_awaited(array(select distinct a.id from sluice.awaited a where a.id = any (v_gone)));
  -- Once per worker, however many of its tasks, and only by the call that asked first: a caller that waits for a task
  -- to stop asks again and again. In a caller's transaction the notifications are sent at its commit.
  perform pg_notify('sluice', 'stop:' || w.id) from (select distinct unnest(v_workers) as id) w;
  if v_gone <> '{}' then perform sluice.cancel_effects(v_gone, p_notes); end if;
  return query select x.id, x.answer from sluice.cancel_answers(p_ids, v_gone, v_asked) x;
end $$;
