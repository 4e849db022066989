-- Append-only as far as lanes go, so it may live in a user's transaction. Per id: 'cancelled',
-- 'asked' (it runs; its worker learns of it with its next heartbeat, and is notified to beat now), 'over', 'unknown', or 'moving'
-- (between two states just now: ask again). p_notes: leave notes to the runs that the tasks belong to; whoever
-- counts them himself does not.
create or replace function sluice.cancel(p_ids bigint[], p_reason text default null, p_notes boolean default true) returns table (id bigint, answer text)
language plpgsql /* settings: index plans */ as $$
#variable_conflict use_column
declare v_left bigint[] := p_ids; v_gone bigint[] := '{}'; v_asked bigint[] := '{}'; v_now timestamptz := sluice.clock(); v_round bigint[]; v_round_asked bigint[];
  v_workers bigint[] := '{}'; v_round_workers bigint[];
begin
  for v_try in 1..3 loop
    with target as materialized (
      select t.* from (select distinct unnest(v_left) as id) u
      cross join lateral (select k.id, k.stream, k.rank, k.gate, k.lanes from sluice.task k where k.id = u.id limit 1) t
    ), s as (
      delete from sluice.scheduled where ctid = any (array(select x.tid from target t cross join lateral (
        select y.ctid as tid from sluice.scheduled y where y.id = t.id for update /* guard:locked */ skip locked /* end */) x)) returning scheduled.id, attempt, held::int
    ), w as (
      delete from sluice.waiting where ctid = any (array(select x.tid from target t cross join lateral unnest(t.lanes) l cross join lateral (
        select y.ctid as tid from sluice.waiting y where y.lane = l and y.place = sluice.lane_place(l, t.rank) and y.id = t.id for update /* guard:locked */ skip locked /* end */) x))
      returning waiting.id, attempt, held::int, waiting.lane, lane_limits[held + 1] as limit_id
    ), r as (
      delete from sluice.ready where ctid = any (array(select y.ctid from sluice.ready y where y.ctid = any (array(
        select sluice.ready_at(t.id, t.stream, t.rank, t.lanes) from target t where t.gate = 0)) for update /* guard:locked */ skip locked /* end */))
      returning ready.id, attempt, coalesce(cardinality(lanes), 0) as held
    ), g as (
      delete from sluice.gated where ctid = any (array(select y.ctid from sluice.gated y where y.ctid = any (array(
        select sluice.gated_at(t.id, t.stream, t.gate, t.rank, t.lanes) from target t where t.gate <> 0)) for update /* guard:locked */ skip locked /* end */))
      returning gated.id, attempt, coalesce(cardinality(lanes), 0) as held
    ), p as (
      delete from sluice.suspect where ctid = any (array(select x.tid from target t cross join lateral (
        select y.ctid as tid from sluice.suspect y where y.id = t.id for update /* guard:locked */ skip locked /* end */) x))
      returning suspect.id, attempt, coalesce(cardinality(lanes), 0) as held
    ), k as (
      delete from sluice.parked where ctid = any (array(select x.tid from target t cross join lateral (
        select y.ctid as tid from sluice.parked y where y.id = t.id for update /* guard:locked */ skip locked /* end */) x)) returning parked.id, attempt, held::int
    ), c as (
      delete from sluice.parent where ctid = any (array(select x.tid from target t cross join lateral (
        select y.ctid as tid from sluice.parent y where y.id = t.id for update /* guard:locked */ skip locked /* end */) x)) returning parent.id, attempt, held::int
    ), gone as materialized (
      select * from k union all select * from c union all select * from s union all select id, attempt, held from w union all select * from r union all select * from g union all select * from p
    ), history as (
      insert into sluice.done (id, state, attempt, finished_at, outcome)
      select id, 'c', attempt, v_now, json_build_object('reason', p_reason) from gone
    ), frees as (
      insert into sluice.dirty (lane, limit_id, freed) select l, 0, count(*) from gone join target t on t.id = gone.id
      cross join lateral unnest(t.lanes[1:/* guard:held */ gone.held /* end */]) l group by l
    ), stood as (
      -- A slot that came free while we had the waiter locked was handed to nobody: look again once we have committed.
      -- Not at windows: items are cancelled by the thousand, and the end of their node leaves a note.
      -- guard: a committed cancel leaves a note -> test/postgres/notes.test.ts: "the commit of a cancel lets the next claim start the task behind it"
      insert into sluice.dirty (lane, limit_id) select lane, max(limit_id) from w where /* guard:note */ limit_id <> -2 /* end */ group by lane
    ), running as materialized (
      select y.id, y.worker from target t cross join lateral (select k.id, k.worker from sluice.running k where k.id = t.id limit 1) y
    ), stops as (
      insert into sluice.stop (id, reason) select id, p_reason from running r where not exists (select from sluice.stop s where s.id = r.id)
      returning stop.id
    )
    select coalesce((select array_agg(gone.id) from gone), '{}'), coalesce((select array_agg(running.id) from running), '{}'),
      array(select distinct r.worker from stops s join running r on r.id = s.id)
    into v_round, v_round_asked, v_round_workers;
    v_gone := v_gone || v_round; v_asked := v_asked || v_round_asked; v_workers := v_workers || v_round_workers;
    -- Those that are over, or never were, are not between two states.
    v_left := array(select u.id from (select unnest(p_ids) except select unnest(v_gone) except select unnest(v_asked)) u(id)
      cross join lateral (select from sluice.task k where k.id = u.id limit 1) t left join lateral (select true as ended from sluice.done k where k.id = u.id limit 1) d on true
      where d.ended is null);
    exit when v_left = '{}';
    if v_try = 2 then perform pg_sleep(0.002); end if;
  end loop;
  perform sluice.tell_awaited(array(select distinct a.id from sluice.awaited a where a.id = any (v_gone)));
  -- Once per worker, however many of its tasks, and only by the call that asked first: what waits for a task to stop
  -- asks again and again. In a caller's transaction they are sent at its commit.
  perform pg_notify('sluice', 'stop:' || w.id) from (select distinct unnest(v_workers) as id) w;
  if p_notes and v_gone <> '{}' then
    insert into sluice.workflow_note (id, run) select w.id, w.run from unnest(v_gone) u(id) cross join lateral (select x.id, x.run from sluice.workflow_task x where x.id = u.id limit 1) w;
    if found then perform sluice.look_by(v_now + interval '100 milliseconds'); end if;
  end if;
  if v_gone <> '{}' then perform sluice.workflow_bereave(v_gone); end if;
  -- What they held may let others through, whom no enqueue announces.
  if v_gone <> '{}' and exists (select from sluice.worker where asleep) then
    perform sluice.ring(array(select distinct t.stream from sluice.task t where t.id = any (v_gone) and t.lanes is not null), cardinality(v_gone));
  end if;
  return query select x.id, x.answer from sluice.cancel_answers(p_ids, v_gone, v_asked) x;
end $$;
