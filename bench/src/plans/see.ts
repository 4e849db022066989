import type { Databases } from "../databases.js";
import { BATCH, callsOf, type Call } from "./calls.js";
import { loadAutoExplain } from "./explain.js";
import type { Bounds, Finding } from "./findings.js";
import { look } from "./look.js";
import { recipeOf, type Scenario } from "./scenario.js";
import type { ScenarioSeen, Seen } from "./seen.js";
import { PlanSession } from "./session.js";
import { slotTimes, timesOf, type SlotTimes, type Times } from "./times.js";

/** Where databases come from. */
export type Source = Pick<Databases, "copyOf" | "version">;

// A claim looks at 16 sources, at no more tasks of each than it wants.
const ROWS_PER_CALL_MAX = BATCH * 20;
// Of each task of a batch: its row, that of the table it leaves, its slots, and their indexes.
const PAGES_PER_CALL_MAX = BATCH * 50;
const BIG_ROWS_MIN = 2_000;
const SLOT_MS_MAX = 1;

/** Fills a database, claims from it as a worker does, and looks. */
export async function seeScenario(databases: Source, scenario: Scenario, pending: number): Promise<ScenarioSeen> {
  const copy = await databases.copyOf(recipeOf(scenario, pending));
  try {
    const session = await PlanSession.open(copy.url);
    try {
      return await see(session, scenario);
    } finally {
      await session.close();
    }
  } finally {
    await copy.drop();
  }
}

/** The times first: once auto_explain is loaded it costs a little, even when it is silent. */
async function see(session: PlanSession, scenario: Scenario): Promise<ScenarioSeen> {
  const calls = callsOf(scenario);
  const times = new Map<Call, Times>();
  for (const call of calls) times.set(call, await timesOf(session, call));
  const slots = await slotsOf(session, scenario);
  const noPlans = await loadAutoExplain(session.client);
  const bounds = await boundsOf(session);
  const seen: Seen[] = [];
  for (const call of calls) {
    const looked = noPlans === null ? await look(session, call, bounds) : null;
    seen.push({ call: call.name, times: times.get(call)!, look: looked });
  }
  return { scenario, calls: seen, slots, noPlans };
}

async function slotsOf(session: PlanSession, scenario: Scenario): Promise<SlotTimes | null> {
  const [limited] = scenario.limited;
  const plain = scenario.contracts.map((c) => c.type).find((name) => name !== limited);
  if (limited === undefined || plain === undefined || scenario.limited.includes(plain)) return null;
  return slotTimes(session, limited, plain);
}

async function boundsOf({ client }: PlanSession): Promise<Bounds> {
  const { rows } = await client.query<{ relname: string }>(
    `select relname from pg_class
     where relnamespace = 'sluice'::regnamespace and relkind = 'r' and reltuples >= $1`,
    [BIG_ROWS_MIN],
  );
  const big = rows.map(({ relname }) => relname);
  return {
    big,
    rows: ROWS_PER_CALL_MAX,
    pages: PAGES_PER_CALL_MAX,
  };
}

/** What of it must not be. */
export function findingsOf({ scenario, calls, slots }: ScenarioSeen): Finding[] {
  const name = scenario.name;
  const faults = calls.flatMap(({ call, look }) =>
    (look?.faults ?? []).map((what) => ({ scenario: name, call, what })),
  );
  return [...faults, ...slotFindings(name, slots)];
}

function slotFindings(scenario: string, slots: SlotTimes | null): Finding[] {
  if (slots === null) return [];
  return (["acquire", "release"] as const)
    .filter((verb) => slots[verb].median > SLOT_MS_MAX)
    .map((verb) => ({
      scenario,
      call: `${verb} a slot`,
      what: `takes ${slots[verb].median.toFixed(2)} ms, more than ${SLOT_MS_MAX} ms`,
    }));
}
