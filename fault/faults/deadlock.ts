// A statement of a worker is the victim of a deadlock. Sluice's own statements take their locks in one
// order; somebody else's transaction (a clean-up by hand, say) need not.
import type pg from "pg";
import type { Random } from "../random.js";
import type { Fault, Stage } from "../stage.js";
import { PROVOKED } from "../server/errors.js";
import { onServer } from "./administrator.js";

const lookEveryMs = 5;
const blockedWithinMs = 2_000;

// What a step locks after it has taken the barrier.
const rows = {
  lanes: "select id from sluice.lane order by used desc limit 20 for update skip locked",
  runs: "select id from sluice.running limit 20 for update skip locked",
};
const behindUs = `select count(*)::int as n from pg_stat_activity
  where wait_event_type = 'Lock' and pg_backend_pid() = any (pg_blocking_pids(pid))`;
// What every step holds, shared, while it waits for those rows.
const barrier = `${PROVOKED} select pg_advisory_xact_lock('sluice.limits'::regclass::oid::int, 0)`;

export const deadlock: Fault = {
  name: "deadlock",
  about: "rows and the barrier are locked in the wrong order, so that a worker's step becomes a deadlock victim",
  disturbs: "server",
  bite: async (stage, random) => {
    const before = await stage.server.deadlocks();
    await onServer(stage, (client) => cross(stage, client, random));
    return (await stage.server.deadlocks()).provoked - before.provoked;
  },
};

async function cross(stage: Stage, client: pg.Client, random: Random): Promise<void> {
  // Whoever waits longest without looking is not the victim: that shall be the others.
  await client.query("set deadlock_timeout = '8s'");
  await client.query("begin");
  try {
    await client.query(random.pick([rows.lanes, rows.runs]));
    if (await untilBlocked(stage, client)) await client.query(barrier);
  } finally {
    await client.query("rollback");
  }
}

async function untilBlocked(stage: Stage, client: pg.Client): Promise<boolean> {
  const end = performance.now() + blockedWithinMs;
  while (!stage.signal.aborted && performance.now() < end) {
    const found = await client.query<{ n: number }>(behindUs);
    if (found.rows[0]!.n > 0) return true;
    await stage.pause(lookEveryMs);
  }
  return false;
}
