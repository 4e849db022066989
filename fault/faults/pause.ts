// A queue that an operator stops for a moment.
import type { Fault, Stage } from "../stage.js";
import { insist, onServer, unlessAway } from "./administrator.js";

const queues = `select queue, array_agg(type order by type) as types from sluice.stream where not paused group by queue order by queue`;
const backlog = `select count(*)::int as n from (
    select from sluice.ready r join sluice.stream s on s.id = r.stream where s.queue = $1
    union all select from sluice.gated g join sluice.stream s on s.id = g.stream where s.queue = $1 limit 1) x`;

interface Queue {
  readonly queue: string;
  readonly types: readonly string[];
}

// Who pauses it resumes it, so two of us must not have the same one.
const inHand = new Set<string>();

export const pause: Fault = {
  name: "pause",
  about: "a queue is paused for 1 to 2 s and resumed",
  disturbs: "work",
  bite: async (stage, random) => {
    const all = await onServer(stage, async (client) => (await client.query<Queue>(queues)).rows);
    const free = (all ?? []).filter(({ queue }) => !inHand.has(queue));
    if (free.length === 0) return 0;
    const chosen = random.pick(free);
    inHand.add(chosen.queue);
    try {
      return await paused(stage, chosen, random.between(1_000, 2_000));
    } finally {
      inHand.delete(chosen.queue);
    }
  },
};

async function paused(stage: Stage, { queue, types }: Queue, forMs: number): Promise<number> {
  try {
    await stage.log.write([{ kind: "pausing", types }]);
    const done = await unlessAway(async () => {
      await stage.sluice.pause(queue);
      return true;
    });
    if (done === undefined) return 0;
    await stage.log.write([{ kind: "paused", types }]);
    await stage.pause(forMs);
    return (await waiting(stage, queue)) ? 1 : 0;
  } finally {
    await stage.log.write([{ kind: "resuming", types }]);
    await insist(() => stage.sluice.resume(queue));
    await stage.log.write([{ kind: "resumed", types }]);
  }
}

/** Whether something could have started if the queue were not paused. */
async function waiting(stage: Stage, queue: string): Promise<boolean> {
  const n = await onServer(stage, async (client) => {
    const { rows } = await client.query<{ n: number }>(backlog, [queue]);
    return rows[0]!.n;
  });
  return (n ?? 0) > 0;
}
