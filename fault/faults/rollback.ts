// A transaction of a user's that does a lot, stays open, and then takes it all back.
import type pg from "pg";
import type { Claims } from "../audit/line.js";
import { flowNames } from "../load/flows.js";
import { offerOf, startFlow, withdrawalOf } from "../load/flow-offer.js";
import { planFlow } from "../load/flow-plan.js";
import { contracts, groups, groupTypes, keysOf, limitsOf, typeNames, type TypeName, type Work } from "../load/terms.js";
import type { Random } from "../random.js";
import type { Fault, Stage } from "../stage.js";
import { onServer } from "./administrator.js";
import { openTasks } from "./tasks.js";

const tasksMax = 30;

// Tags must differ from bite to bite.
let bites = 0;

const orderKeys = `select distinct t.input ->> 'orderKey' as key from sluice.waiting w join sluice.task t on t.id = w.id
  where w.lane >> 60 = 1 and t.input ->> 'orderKey' is not null limit 20`;

export const lateRollbackEnqueue: Fault = {
  name: "late-rollback-enqueue",
  about: `a transaction enqueues ${tasksMax} tasks of all types, starts a run and rolls back 1 to 2 s later`,
  disturbs: "work",
  holdsLocks: true,
  bite: async (stage, random) => {
    const bite = ++bites;
    const lines = await linesOf(stage);
    const works = Array.from({ length: tasksMax }, (_, n) => workOf(random, `rollback/${bite}-${n}`, lines));
    const flow = planFlow(random.pick(flowNames), `rollback/${bite}-f`, random);
    await stage.log.write([
      ...works.map((work) => ({ kind: "offered", ...claimsOf(work) }) as const),
      ...offerOf(flow),
    ]);
    const enqueued = await rolledBack(stage, random, async (client) => {
      for (const work of works) await stage.sluice.enqueue(contracts[work.type as TypeName], work, { tx: client });
      await startFlow(stage.sluice, flow, client);
      return works.length;
    });
    await stage.log.write([...works.map(({ tag }) => ({ kind: "withdrawn", tag }) as const), ...withdrawalOf(flow)]);
    return enqueued;
  },
};

/** Order keys in which somebody waits: what is taken back must not hold him up. */
async function linesOf(stage: Stage): Promise<string[]> {
  const found = await onServer(stage, async (client) => {
    const { rows } = await client.query<{ key: string }>(orderKeys);
    return rows.map(({ key }) => key);
  });
  return found ?? [];
}

function workOf(random: Random, tag: string, lines: readonly string[]): Work {
  const name = random.pick(typeNames);
  const { ordered, attempts } = contracts[name];
  const keys = keysOf(contracts[name]);
  const keyed = keys > 0 ? `k${random.between(1, 5)}` : null;
  const key = groupTypes.includes(name) ? random.pick(groups).name : keyed;
  const otherKey = keys > 1 ? `k${random.between(1, 5)}` : null;
  const line = ordered ? random.pick([tag, ...lines]) : null;
  const limits = limitsOf(name, key, otherKey);
  const claims = { tag, type: name, orderKey: line, place: null, limits };
  return { ...claims, runAt: null, attempts, ms: 1, key, otherKey, deeds: [] };
}

function claimsOf({ tag, type, orderKey, place, limits, runAt, attempts }: Work): Claims {
  return { tag, type, orderKey, place, limits, runAt, attempts };
}

export const lateRollbackCancel: Fault = {
  name: "late-rollback-cancel",
  about: `a transaction cancels ${tasksMax} waiting and running tasks and rolls back 1 to 2 s later`,
  disturbs: "work",
  holdsLocks: true,
  bite: async (stage, random) => {
    // Nothing is said to the log: none of them may end cancelled because of this.
    const ids = await openTasks(stage, tasksMax);
    return rolledBack(stage, random, async (client) => {
      let taken = 0;
      for (const id of ids) {
        const answer = await stage.sluice.task(id).cancel({ tx: client, reason: "rolled back" });
        if (answer === "cancelled" || answer === "asked") taken++;
      }
      return taken;
    });
  },
};

/** Does it in a transaction that is rolled back late: by us, or by a server that goes away. */
async function rolledBack(stage: Stage, random: Random, work: (client: pg.Client) => Promise<number>): Promise<number> {
  const forMs = random.between(1_000, 2_000);
  const done = await onServer(stage, async (client) => {
    await client.query("begin");
    const n = await work(client);
    await stage.pause(forMs);
    await client.query("rollback");
    return n;
  });
  return done ?? 0;
}
