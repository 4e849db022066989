import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pg from "pg";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { Copy, Recipe } from "../../../bench/src/databases.js";
import { BATCH, callsOf } from "../../../bench/src/plans/calls.js";
import type { Finding } from "../../../bench/src/plans/findings.js";
import { loadAutoExplain } from "../../../bench/src/plans/explain.js";
import { savePlans } from "../../../bench/src/plans/save.js";
import { scenarios, recipeOf, type Scenario } from "../../../bench/src/plans/scenario.js";
import { findingsOf, seeScenario } from "../../../bench/src/plans/see.js";
import { PlanSession } from "../../../bench/src/plans/session.js";
import { freshDatabase } from "../../support/database.js";

// Large enough that two tables count as big. The bench itself uses the full size.
const PENDING = 3_000;

let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "sluice-plans-"));
});

afterEach(() => rmSync(folder, { recursive: true }));

async function run(url: string, text: string): Promise<Record<string, unknown>[]> {
  const client = new pg.Client(url);
  await client.connect();
  try {
    return (await client.query<Record<string, unknown>>(text)).rows;
  } finally {
    await client.end();
  }
}

/** Databases like those of the bench, but each is changed after it is filled. */
function databases(change: string): {
  readonly version: string;
  copyOf(recipe: Recipe): Promise<Copy>;
} {
  return {
    version: "of the test",
    async copyOf(recipe) {
      const database = await freshDatabase({ migrated: true });
      await recipe.fill(database.url);
      await run(database.url, change);
      await run(database.url, "vacuum (analyze)");
      const { url } = database;
      return { url, drop: () => database.drop(), query: (text) => run(url, text) };
    },
  };
}

const hasAutoExplain = async (): Promise<boolean> => {
  const database = await freshDatabase();
  const client = new pg.Client(database.url);
  await client.connect();
  try {
    return (await loadAutoExplain(client)) === null;
  } finally {
    await client.end();
    await database.drop();
  }
};

// The tests fill and inspect up to four backlogs, up to three times.
const TIMEOUT_MS = 300_000;
const TRIES = 3;

/**
 * Saves the plans and keeps only findings that recur in every try. A plan that reads too much does so every time. But
 * when other sessions change many tables at once, in any database, PostgreSQL discards the catalog caches of every
 * session: its next call reads the catalogs again, which may be two thousand pages.
 */
async function savedPlans(): Promise<Awaited<ReturnType<typeof savePlans>>> {
  const options = { pending: PENDING, tell: () => {} };
  for (let tries = 1, before: readonly Finding[] | null = null; ; tries++) {
    const { findings, ...saved } = await savePlans(databases("select"), folder, options);
    const again = (x: Finding): boolean =>
      before === null || before.some((y) => x.scenario === y.scenario && x.call === y.call);
    // Times depend on the machine.
    before = findings.filter((x) => !x.call.endsWith("a slot") && again(x));
    if (before.length === 0 || tries === TRIES) return { ...saved, findings: before };
  }
}

test(
  "bench plans saves the plans of every scenario, and none of them grows with the backlog",
  { timeout: TIMEOUT_MS },
  async () => {
    const { findings, summary } = await savedPlans();
    const files = readdirSync(join(folder, "plans")).toSorted();
    expect(files).toEqual([...scenarios.map(({ name }) => `${name}.txt`), "summary.md"].toSorted());
    expect(findings).toEqual([]);
    const text = readFileSync(join(folder, "plans", "one-limited.txt"), "utf8");
    if (await hasAutoExplain()) {
      expect(text).toContain("-- the call itself");
      expect(text).toMatch(/-- sluice\.\w+ line \d+[\s\S]*Buffers: shared hit=/);
    } else expect(summary).toContain("auto_explain is not available");
  },
);

const scenarioOf = (name: string): Scenario => scenarios.find((s) => s.name === name)!;

test("bench plans reports a claim that scans its table sequentially", { timeout: TIMEOUT_MS }, async (context) => {
  if (!(await hasAutoExplain())) context.skip("this server does not let us load auto_explain");
  const broken = databases("drop index sluice.ready_next");
  const seen = await seeScenario(broken, scenarioOf("no-limits"), PENDING);
  const found = findingsOf(seen).map(({ call, what }) => `${call}: ${what}`);
  expect(found).toContainEqual(expect.stringMatching(/^claim 50: sluice\.sources line \d+: Seq Scan on ready reads/));
});

test(
  "a claim with all slots taken returns nothing if all types are limited, and other types if only one is",
  { timeout: TIMEOUT_MS },
  async () => {
    const claimed = new Map<string, number>();
    for (const name of ["all-limited", "all-share-one", "one-limited"]) {
      const copy = await databases("select").copyOf(recipeOf(scenarioOf(name), PENDING));
      const session = await PlanSession.open(copy.url);
      try {
        await session.undone(async () => {
          const ask = await callsOf(scenarioOf(name)).at(-1)!.prepare(session);
          claimed.set(name, (await session.step(ask)).ids.length);
        });
      } finally {
        await session.close();
        await copy.drop();
      }
    }
    expect(Object.fromEntries(claimed)).toEqual({
      "all-limited": 0,
      "all-share-one": 0,
      "one-limited": BATCH,
    });
  },
);
