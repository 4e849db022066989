-- Takes at most p_max notes, the oldest first, and locks their runs. Never waits: notes of a run that another
-- transaction holds are passed over and others are taken instead, so that one stalled run stops no other, however many
-- notes it has. Deletes what it takes. Runs under the planner settings of workflow_process_notes. Returns how many,
-- with the task (null for an event) and the run of each.
create or replace function sluice.workflow_take_notes(
  p_max int, out taken int, out ids bigint[], out runs bigint[]
) language plpgsql as $$
declare v_tids tid[]; v_note_ids bigint[]; v_of bigint[]; v_runs bigint[]; v_more bigint[];
begin
  select array_agg(x.tid), array_agg(x.id), array_agg(x.run) into v_tids, v_note_ids, v_of
  from (
    select k.ctid as tid, k.id, k.run from sluice.workflow_note k order by k.n limit p_max for update skip locked
  ) x;
  v_runs := sluice.workflow_lock_free(v_of);
  /* guard:busy */ if /* end */ (select count(*) from unnest(v_of) u(run) where u.run = any (v_runs))
    < cardinality(v_of) then
    -- guard: notes of busy runs are passed over -> test/postgres/workflow/standing.test.ts: "100 notes of a locked run do not delay the note of another run"
    v_more := sluice.workflow_lock_free(
      sluice.workflow_runs_with_notes(array(select distinct u from unnest(v_of) u), p_max));
    select v_tids || array_agg(x.tid), v_note_ids || array_agg(x.id), v_of || array_agg(x.run)
    into v_tids, v_note_ids, v_of
    from (
      select y.*
      from unnest(v_more) u(run)
      cross join lateral (
        select k.ctid as tid, k.id, k.run from sluice.workflow_note k
        where k.run = u.run order by k.n limit 10 for update skip locked
      ) y limit p_max
    ) x;
    v_runs := v_runs || v_more;
  end if;
  select array_agg(u.tid), array_agg(u.id), array_agg(u.run) into v_tids, ids, runs
  from unnest(v_tids, v_note_ids, v_of) u(tid, id, run)
  where u.run = any (v_runs);
  delete from sluice.workflow_note where ctid = any (v_tids);
  get diagnostics taken = row_count;
end $$;
