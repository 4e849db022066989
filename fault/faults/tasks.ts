// An operator's hand on many tasks at once.
import { isSluiceError } from "../../src/index.js";
import type { Random } from "../random.js";
import type { Fault, Stage } from "../stage.js";
import { onServer, unlessAway } from "./administrator.js";

const atOnce = 4;

const open = `select id::text as id from (
    (select id from sluice.running limit $1) union all (select id from sluice.ready limit $1) union all (select id from sluice.gated limit $1)
    union all (select id from sluice.waiting limit $1) union all (select id from sluice.scheduled limit $1)) x
  order by random() limit $1`;

/** Tasks that have not ended, of every state. */
export async function openTasks(stage: Stage, most: number): Promise<string[]> {
  const ids = await onServer(stage, async (client) => {
    const { rows } = await client.query<{ id: string }>(open, [most]);
    return rows.map(({ id }) => id);
  });
  return ids ?? [];
}

const ended = `select id::text as id from sluice.done where state <> 'succeeded' order by random() limit $1`;

export const cancel: Fault = {
  name: "cancel",
  about: "50 to 150 waiting and running tasks are cancelled",
  disturbs: "work",
  bite: async (stage, random) => {
    const ids = await openTasks(stage, random.between(50, 150));
    await stage.log.write(ids.map((task) => ({ kind: "cancelling", task })));
    const answers = await each(ids, (id) => unlessAway(() => stage.sluice.task(id).cancel({ reason: "mass cancel" })));
    return answers.filter((answer) => answer === "cancelled" || answer === "asked").length;
  },
};

export const retry: Fault = {
  name: "retry",
  about: "up to 20 failed or cancelled tasks are retried by hand",
  disturbs: "work",
  bite: async (stage, random: Random) => {
    const most = random.between(5, 20);
    const ids = await onServer(stage, async (client) => {
      const { rows } = await client.query<{ id: string }>(ended, [most]);
      return rows.map(({ id }) => id);
    });
    await stage.log.write((ids ?? []).map((task) => ({ kind: "retrying", task })));
    const answers = await each(ids ?? [], (id) => retried(stage, id));
    return answers.filter((answer) => answer === true).length;
  },
};

/** Undefined if nobody knows. What was surely not retried is told: then it excuses nothing. */
async function retried(stage: Stage, id: string): Promise<boolean | undefined> {
  const answer = await unlessAway(async () => {
    try {
      return await stage.sluice.retry(id);
    } catch (e) {
      // A task of a run is retried alone only while its node runs.
      if (!isSluiceError(e, "workflow_over") && mayHaveHappened(e)) throw e;
      return false;
    }
  });
  if (answer === false) await stage.log.write([{ kind: "notRetried", task: id }]);
  return answer;
}

/** Only if it was sent, and the server did not say itself that it had refused it. */
export function mayHaveHappened(e: unknown): boolean {
  if (!isSluiceError(e, "database_unavailable")) return !isSluiceError(e, "database_busy");
  const { sent, sqlstate } = e.details ?? {};
  return sent !== false && (typeof sqlstate !== "string" || /^(08|57P)/.test(sqlstate));
}

/** Some at a time. */
async function each<T>(ids: readonly string[], act: (id: string) => Promise<T>): Promise<T[]> {
  const left = [...ids];
  const results: T[] = [];
  const work = async (): Promise<void> => {
    for (let id = left.pop(); id !== undefined; id = left.pop()) results.push(await act(id));
  };
  await Promise.all(Array.from({ length: atOnce }, work));
  return results;
}
