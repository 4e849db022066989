-- Takes at most p_max notes of what happened in users' transactions and acts on them, together with tasks that have
-- just succeeded here (p_ids). Waits only for the locks of the runs of p_ids, in the order of their ids, and does that
-- first. Rows of notes and of their runs are taken with SKIP LOCKED, so the caller may hold any other locks. Returns
-- how many notes it took, the streams and the number of new tasks, and whether some of them joined a window.
create or replace function sluice.workflow_process_notes(
  p_max int, p_ids bigint[] default null,
  out taken int, out streams int[], out made int, out joined boolean
) language plpgsql /* settings: index plans */ as $$
declare v record; v_note_ids bigint[]; v_of bigint[]; v_heard bigint[]; v_ids bigint[]; v_states sluice.state[];
begin
  made := 0;
  joined := false;
  if p_ids is not null then
    perform from sluice.workflow_run r
    where r.id = any (array(
      select k.run
      from unnest(p_ids) u(id)
      cross join lateral (select run from sluice.workflow_task w where w.id = u.id limit 1) k))
    order by r.id for no key update;
  end if;
  select t.taken, t.ids, t.runs into taken, v_note_ids, v_of from sluice.workflow_take_notes(p_max) t;
  if taken = 0 and p_ids is null then
    return;
  end if;

  select array_agg(d.id), array_agg(d.state) into v_ids, v_states
  from unnest(v_note_ids) u(id)
  cross join lateral (select x.id, x.state from sluice.done x where x.id = u.id limit 1) d;
  if v_ids is not null or p_ids is not null then
    select * into v
    from sluice.workflow_ended(
      v_ids || p_ids, v_states || array_fill('succeeded'::sluice.state, array[coalesce(cardinality(p_ids), 0)]));
    streams := v.streams;
    made := v.made;
    joined := v.joined;
  end if;
  v_heard := array(select distinct u.run from unnest(v_note_ids, v_of) u(id, run) where u.id is null);
  if v_heard <> '{}' then
    select * into v from sluice.workflow_deliver_events(v_heard);
    streams := streams || v.streams;
    made := made + v.made;
    joined := joined or v.joined;
  end if;
end $$;
