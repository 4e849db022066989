-- Called by an idle worker in reserve, which goes on call if it is needed. It takes a free place, or relieves a worker
-- that has been on call for a second and has tasks in hand, is awake or has no capacity. So load spreads over all
-- workers, and the workers that a ring can reach are idle.
-- on_call: whether the worker is on call now. reserve: how many sleep in reserve, which decides how often to poll.
-- A transaction that holds a worker's row waits for nothing else, so the two row locks here need no order. Two workers
-- that ask at the same time may both take the last place: one listener more, until the next relief.
create or replace function sluice.go_on_call(p_worker bigint, out on_call boolean, out reserve int)
language plpgsql as $$
declare
  v sluice.worker;
  v_held int;
begin
  select * into v from sluice.worker w where w.id = p_worker;
  on_call := v.on_call_since is not null;
  select c.on_call, c.reserve into v_held, reserve from sluice.crew_of(v.streams) c;
  if v.id is null or on_call then return; end if;
  if v_held >= sluice.on_call_max() then
    -- guard: a worker with tasks in hand is relieved -> test/postgres/on-call.test.ts: "a worker in reserve relieves one with tasks in flight, and no idle one"
    update sluice.worker set on_call_since = null where id = (
      select w.id from sluice.worker w
      where w.streams = v.streams and w.on_call_since < sluice.clock() - interval '1 second'
        and /* guard:busy */ (w.busy or not w.asleep or w.capacity_available = 0) /* end */
      order by w.asleep, w.on_call_since
      limit 1 for update skip locked);
    if not found then return; end if;
  end if;
  update sluice.worker set on_call_since = sluice.clock() where id = p_worker;
  on_call := true;
end $$;
