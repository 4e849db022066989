-- Takes notes of what happened in users' transactions and acts on them, together with what has just succeeded here
-- (p_ids). Waits only for the runs of the latter, in the order of their ids, and that comes first. The oldest notes come
-- first. Notes of a run that another transaction has in hand are passed over, and others are taken in their place: one
-- run that stands still must stop no other, however many notes it has. Rows of notes and of their runs are taken with
-- SKIP LOCKED, so it makes no difference what else is locked. Returns how many notes.
create or replace function sluice.workflow_notes(p_max int, p_ids bigint[] default null, out taken int, out streams int[], out made int, out joined boolean)
language plpgsql /* settings: index plans */ as $$
declare v record; v_tids tid[]; v_note_ids bigint[]; v_of bigint[]; v_heard bigint[]; v_ids bigint[]; v_states "char"[]; v_runs bigint[]; v_more bigint[];
begin
  made := 0; joined := false;
  if p_ids is not null then
    perform from sluice.workflow_run r where r.id = any (array(select k.run from unnest(p_ids) u(id) cross join lateral (select run from sluice.workflow_task w where w.id = u.id limit 1) k))
      order by r.id for no key update;
  end if;
  select array_agg(x.tid), array_agg(x.id), array_agg(x.run) into v_tids, v_note_ids, v_of
  from (select k.ctid as tid, k.id, k.run from sluice.workflow_note k order by k.n limit p_max for update skip locked) x;
  v_runs := sluice.workflow_free(v_of);
  /* guard:busy */ if /* end */ (select count(*) from unnest(v_of) u(run) where u.run = any (v_runs)) < cardinality(v_of) then
    -- guard: notes of busy runs are passed over -> test/postgres/workflow/standing.test.ts: "100 notes of a run that another has in hand keep no other run's note waiting"
    v_more := sluice.workflow_free(sluice.workflow_noted(array(select distinct u from unnest(v_of) u), p_max));
    select v_tids || array_agg(x.tid), v_note_ids || array_agg(x.id), v_of || array_agg(x.run) into v_tids, v_note_ids, v_of
    from (select y.* from unnest(v_more) u(run) cross join lateral (
        select k.ctid as tid, k.id, k.run from sluice.workflow_note k where k.run = u.run order by k.n limit 10 for update skip locked) y limit p_max) x;
    v_runs := v_runs || v_more;
  end if;
  delete from sluice.workflow_note where ctid = any (array(select u.tid from unnest(v_tids, v_of) u(tid, run) where u.run = any (v_runs)));
  get diagnostics taken = row_count;
  if taken = 0 and p_ids is null then return; end if;

  select array_agg(d.id), array_agg(d.state) into v_ids, v_states from unnest(v_note_ids, v_of) u(id, run)
  cross join lateral (select x.id, x.state from sluice.done x where x.id = u.id limit 1) d where u.run = any (v_runs);
  if v_ids is not null or p_ids is not null then
    select * into v from sluice.workflow_ended(v_ids || p_ids, v_states || array_fill('s'::"char", array[coalesce(cardinality(p_ids), 0)]));
    streams := v.streams; made := v.made; joined := v.joined;
  end if;
  v_heard := array(select distinct u.run from unnest(v_note_ids, v_of) u(id, run) where u.id is null and u.run = any (v_runs));
  if v_heard <> '{}' then
    select * into v from sluice.workflow_heard(v_heard);
    streams := streams || v.streams; made := made + v.made; joined := joined or v.joined;
  end if;
end $$;
