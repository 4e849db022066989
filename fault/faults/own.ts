// A type gets a limit of its own while its tasks run, or loses it: what a deploy may do.
import { contracts, terms } from "../load/terms.js";
import type { Fault, Stage } from "../stage.js";
import { insist, insistOnServer, unlessAway } from "./administrator.js";
import { holding, observed, telling } from "./number.js";

const addedSlots = 3;
const looking = { forMs: 2_000, toTheEnd: false };
const running = `select count(*)::int as n from sluice.running r join sluice.task t on t.id = r.id
  join sluice.stream s on s.id = t.stream where s.type = $1`;

export const limitRemove: Fault = {
  name: "limit-remove",
  about: "the limit of a type is removed until more of its tasks run than it allowed, and then declared again",
  disturbs: "work",
  bite: (stage) => holding("own", () => withoutLimit(stage)),
};

async function withoutLimit(stage: Stage): Promise<number> {
  const slots = terms.limits["own"]!;
  const { sluice } = stage;
  try {
    const done = await unlessAway(() => telling(stage, "own", null, () => sluice.limits.remove("own")));
    if (done === undefined) return 0;
    return await observed(stage, looking, async () => (await runningOf(stage, "own")) > slots);
  } finally {
    // What runs by then is counted in.
    await insist(() => telling(stage, "own", slots, () => sluice.sync([contracts.own])));
  }
}

export const limitAdd: Fault = {
  name: "limit-add",
  about: `a type without a limit gets one of ${addedSlots} until it is full, and then loses it`,
  disturbs: "work",
  bite: (stage) => holding("plain", () => withLimit(stage)),
};

async function withLimit(stage: Stage): Promise<number> {
  const limited = { ...contracts.plain, concurrency: addedSlots };
  const { limits } = stage.sluice;
  try {
    const add = () => telling(stage, "plain", addedSlots, () => stage.sluice.sync([limited]));
    if ((await unlessAway(add)) === undefined) return 0;
    const full = async () => (await limits.get("plain")).used >= addedSlots;
    return await observed(stage, { ...looking, toTheEnd: true }, full);
  } finally {
    await insist(() => telling(stage, "plain", null, () => limits.remove("plain")));
  }
}

function runningOf(stage: Stage, type: string): Promise<number> {
  return insistOnServer(stage, async (client) => {
    const { rows } = await client.query<{ n: number }>(running, [type]);
    return rows[0]!.n;
  });
}
