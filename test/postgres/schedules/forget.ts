import type { Scene, Session } from "../../support/sql.js";
import { schedule } from "./schedule.js";

const HOLD = 4711;

/** A stream, and a group that the keeper has found unused. */
export async function unusedGroup(session: Session, name = "group"): Promise<{ stream: number; group: number }> {
  const stream = await session.type("t");
  const group = await session.value<number>("select sluice.declare_limit($1, 1, null, p_transient => true)", [name]);
  await session.rows("select sluice.declare_use($1, array[$2::int])", [stream, group]);
  await forget(session, 3_600_000);
  return { stream, group };
}

/** One look of the keeper at all limits; how many were forgotten. */
export function forget(session: Session, unusedMs = 0): Promise<number> {
  const text = "select forgotten from sluice.forget_limits(0, 1000, $1)";
  return session.value<number>(text, [unusedMs]);
}

const limits = (session: Session): Promise<number> => session.value("select count(*)::int from sluice.limits");

/** A transaction has enqueued a task of the group and stays open. */
export const openEnqueue = schedule({ open: 0, committed: 0, limits: 1 }, async (scene) => {
  const [keeper, user] = await scene.sessions(2);
  const { stream, group } = await unusedGroup(keeper);
  await user.begin();
  await user.enqueue(stream, { limits: [group] });
  const open = await forget(keeper);
  await user.commit();
  return { open, committed: await forget(keeper), limits: await limits(keeper) };
});

/** Stops a keeper of this setting after it has looked for tasks, before it tries the group's lock. */
async function stopAtLock(scene: Scene): Promise<void> {
  await scene.replace(`create or replace function sluice.limit_bucket(p_limit int) returns int
    language plpgsql volatile as $$
    begin
      if current_setting('test.stops', true) = 'here' then perform pg_advisory_xact_lock(${HOLD}); end if;
      return 1 + p_limit % 32;
    end $$`);
}

/** A transaction that has enqueued a task commits after the keeper's first look and before it has the lock. */
export const committedBesideForget = schedule({ forgotten: 0, limits: 1 }, async (scene) => {
  const [keeper, user, gatekeeper] = await scene.sessions(3);
  const { stream, group } = await unusedGroup(keeper);
  await stopAtLock(scene);
  await keeper.rows("set test.stops = 'here'");
  await gatekeeper.rows("select pg_advisory_lock($1)", [HOLD]);
  await user.begin();
  await user.enqueue(stream, { limits: [group] });
  const forgotten = forget(keeper);
  await scene.blocked(forgotten);
  await user.commit();
  await gatekeeper.rows("select pg_advisory_unlock($1)", [HOLD]);
  return { forgotten: await forgotten, limits: await limits(user) };
});

/** A group whose task waits, has run and is in history, and is gone from it. */
export const groupWithTasks = schedule({ waiting: 0, past: 0, gone: 1 }, async (scene) => {
  const [keeper, user] = await scene.sessions(2);
  const { stream, group } = await unusedGroup(keeper);
  const worker = await user.register([stream]);
  await user.enqueue(stream, { limits: [group] });
  const waiting = await forget(keeper);
  await user.step(worker, 0, await user.claim(worker, 1));
  const past = await forget(keeper);
  await user.script("delete from sluice.done; delete from sluice.task");
  await forget(keeper);
  return { waiting, past, gone: await forget(keeper) };
});

/** The same for a task that has another total too. */
export const setWithTasks = schedule({ waiting: 0, gone: 1, sets: 0 }, async (scene) => {
  const [keeper, user] = await scene.sessions(2);
  const { stream, group } = await unusedGroup(keeper);
  const other = await user.limit("other", { total: 5 });
  const [id] = await user.enqueue(stream, { limits: [other, group] });
  const waiting = await forget(keeper);
  await user.cancel([id!]);
  await user.script("delete from sluice.done; delete from sluice.task");
  await forget(keeper);
  const gone = await forget(keeper);
  const sets = await user.value<number>(
    "select (select count(*) from sluice.gate_set)::int + (select count(*) from sluice.gate_member)::int",
  );
  return { waiting, gone, sets };
});

/** Another session declares the group that the keeper has found unused. */
export const declaredAgain = schedule({ forgotten: 0 }, async (scene) => {
  const [keeper, user] = await scene.sessions(2);
  await unusedGroup(keeper);
  await user.value("select sluice.declare_limit('group', 1, null, p_transient => true)");
  return { forgotten: await forget(keeper) };
});
