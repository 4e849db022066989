-- Called for workers that could not reach the database for longer than their lease, but did not die: no crash counts
-- against the tasks they had in hand. Tasks that nothing has reaped yet go back uncounted. Returns the workers of which
-- another transaction holds a task: call again for them. Locks: the barrier, shared; rows of running, or skips them;
-- rows of crash by id; then as in a step.
create or replace function sluice.survived(p_workers bigint[]) returns bigint[]
language plpgsql set lock_timeout = '500ms' as $$
declare
  v_ids bigint[];
  v_claims bigint[];
  v record;
  v_gone bigint[];
begin
  perform sluice.barrier_shared();
  delete from sluice.worker where id = any (array(
    select w.id from sluice.worker w
    where w.id = any (p_workers) and w.expires_at <= sluice.clock()
    for update skip locked));
  -- A step that settles a few of them locks one after the other, in another order than the settle below would.
  -- guard: a worker that survived waits for no settle -> test/postgres/attacks.test.ts: "attack 5: a surviving worker leaves a task to the settle that has locked it"
  select array_agg(x.id), array_agg(x.claim)
  into v_ids, v_claims
  from (
    select r.id, r.claim from sluice.running r
    where r.worker = any (p_workers) and not exists (select from sluice.worker w where w.id = r.worker)
    for update /* guard:locked */ skip locked /* end */) x;
  if v_ids is not null then
    select * into v
    from sluice.settle_others(
      v_ids, v_claims, array_fill('release'::sluice.settlement, array[cardinality(v_ids)]), null, null);
  end if;
  v_gone := array(
    select w from unnest(p_workers) w
    where not exists (select from sluice.worker x where x.id = w)
      and not exists (select from sluice.running r where r.worker = w));
  perform from sluice.crash c where c.workers && v_gone order by c.id for update;
  delete from sluice.crash where workers <@ v_gone;
  update sluice.crash set workers = array(select w from unnest(workers) w where w <> all (v_gone))
  where workers && v_gone;
  -- Lanes come last, as in a step.
  if v_ids is not null then
    if v.ended is not null and exists (select from sluice.workflow_run where finished_at is null) then
      perform sluice.workflow_ended_elsewhere(v.ended, v.ended_states);
    end if;
    if v.gates is not null then perform sluice.give_back(v.gates, v.gates_n); end if;
    if v.lanes is not null then perform sluice.ring_streams(sluice.admit(v.lanes, null, null, null)); end if;
  end if;
  return array(select w from unnest(p_workers) w where w <> all (v_gone));
end $$;
