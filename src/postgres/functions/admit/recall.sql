-- Lanes whose blockers have ended, committed or not, become notes, and so do those of kinds that are no longer stuck.
-- Cheap while there are none, however many lanes wait. Of lanes whose kinds are still stuck, 50 of each kind
-- become notes all the same, from a random key on: tasks of other kinds may wait there too.
create or replace function sluice.recall(p_max int) returns int
language plpgsql /* settings: index plans */ as $$
declare
  v_ended bigint[]; v_stuck bigint[]; v_tids tid[]; v_n int;
  v_from bigint := sluice.random_key();
begin
  with recursive blocker as (
    (select p.blocker as id from sluice.postponed p order by p.blocker limit 1)
    union all
    select (select p.blocker from sluice.postponed p where p.blocker > b.id order by p.blocker limit 1) from blocker b
    where b.id is not null
  ), judged as (
    select b.id, case when b.id >= 0 then sluice.has_ended(b.id)
      else not exists (select from sluice.stuck s where s.n = -b.id) end as ended from blocker b where b.id is not null
  )
  select coalesce(array_agg(j.id) filter (where j.ended), '{}'),
    coalesce(array_agg(j.id) filter (where not j.ended and j.id < 0), '{}')
  into v_ended, v_stuck from judged j;
  -- guard: transactions that ended come before kinds that are stuck -> test/postgres/notes.test.ts: "a waiter of a rolled-back cancel is admitted beside thousands of keys whose tasks are stuck"
  v_tids := array(
      select ctid from sluice.postponed where blocker = any /* guard:ended-first */ (v_ended) /* end */
      limit p_max for update skip locked)
    || array(select x.tid from unnest(v_stuck) k(id) cross join lateral (
      select p.ctid as tid from sluice.postponed p where p.blocker = k.id and p.lane >= v_from order by p.lane limit 50
      for update skip locked) x);
  if v_tids = '{}' then return 0; end if;
  with gone as (delete from sluice.postponed where ctid = any (v_tids) returning *)
  insert into sluice.dirty (lane, limit_id) select lane, max(limit_id) from gone group by lane;
  get diagnostics v_n = row_count;
  return v_n;
end $$;
