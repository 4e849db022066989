// An operator's hand on runs of workflows. The log calls them flows.
import { isSluiceError } from "../../src/index.js";
import { windowOf } from "../load/flows.js";
import type { Fault, Stage } from "../stage.js";
import { onServer, unlessAway } from "./administrator.js";
import { holding, telling } from "./number.js";
import { mayHaveHappened } from "./tasks.js";

interface Found {
  readonly id: string;
  readonly flow: string;
}

interface FoundWindow extends Found {
  readonly node: string;
  /** As it was declared, and as it is. */
  readonly first: number;
  readonly slots: number;
}

const open = `select id::text as id, input ->> 'tag' as flow from sluice.workflow_run
  where finished_at is null and not stopping and parent is null order by random() limit $1`;
const unsuccessful = `select id::text as id, input ->> 'tag' as flow from sluice.workflow_run
  where finished_at is not null and state <> 'succeeded' and parent is null order by random() limit $1`;
// More wait at it than it lets through: so its number is what holds them back.
const windows = `select r.id::text as id, r.input ->> 'tag' as flow, s.name as node, s.window_size as first, n.window_size as slots
  from sluice.workflow_node n join sluice.workflow_run r on r.id = n.run join sluice.workflow_step s on s.graph = r.graph and s.node = n.node
  where n.state = 'running' and not n.failing and n.lane is not null and n.total - n.succeeded - n.failed - n.cancelled > 2 * n.window_size
  order by random() limit $1`;

async function find<T extends Found>(stage: Stage, text: string, most: number): Promise<T[]> {
  const found = await onServer(stage, async (client) => (await client.query<T>(text, [most])).rows);
  return found ?? [];
}

const foundWithinMs = 3_000;
const lookEveryMs = 50;

/** The same, looking for a while. */
async function findSoon<T extends Found>(stage: Stage, text: string, most: number): Promise<T[]> {
  const end = performance.now() + foundWithinMs;
  for (;;) {
    const found = await find<T>(stage, text, most);
    if (found.length > 0 || stage.signal.aborted || performance.now() > end) return found;
    await stage.pause(lookEveryMs);
  }
}

export const runCancel: Fault = {
  name: "run-cancel",
  about: "up to 3 workflow runs are cancelled, in whatever state they are",
  disturbs: "work",
  bite: async (stage, random) => {
    const runs = await findSoon(stage, open, random.between(1, 3));
    await stage.log.write(runs.map(({ flow }) => ({ kind: "flowCancelling", flow })));
    let bites = 0;
    for (const { id } of runs) {
      const answer = await unlessAway(() => stage.sluice.run(id).cancel("cancelled by hand"));
      if (answer === "cancelled" || answer === "asked") bites++;
    }
    return bites;
  },
};

export const runRetry: Fault = {
  name: "run-retry",
  about: "up to 5 failed or cancelled workflow runs are retried",
  disturbs: "work",
  bite: async (stage, random) => {
    const runs = await findSoon(stage, unsuccessful, random.between(1, 5));
    let bites = 0;
    for (const run of runs) bites += (await retried(stage, run)) ? 1 : 0;
    return bites;
  },
};

/** What was surely not retried is told: then it excuses nothing. */
async function retried(stage: Stage, { id, flow }: Found): Promise<boolean> {
  await stage.log.write([{ kind: "flowRetrying", flow }]);
  const nodes = await unlessAway(async () => {
    try {
      return await stage.sluice.run(id).retry();
    } catch (e) {
      const refused = isSluiceError(e, "workflow_stopping") || isSluiceError(e, "workflow_running");
      if (!refused && mayHaveHappened(e)) throw e;
      return 0;
    }
  });
  if (nodes === 0) await stage.log.write([{ kind: "flowNotRetried", flow }]);
  return (nodes ?? 0) > 0;
}

export const runWindow: Fault = {
  name: "run-window",
  about: "the window of a full fan-out is set to 1, or to twice its size plus one",
  disturbs: "work",
  bite: async (stage, random) => {
    const [found] = await findSoon<FoundWindow>(stage, windows, 1);
    if (found === undefined) return 0;
    const { id, flow, node, first, slots } = found;
    const to = slots > 1 && random.next() < 0.5 ? 1 : 2 * slots + 1;
    return holding(`${flow} ${node}`, async () => {
      let done = false;
      await unlessAway(() =>
        telling(stage, windowOf(first, flow, node), to, async () => {
          done = await stage.sluice.run(id).window(node, to);
        }),
      );
      return done ? 1 : 0;
    });
  },
};
