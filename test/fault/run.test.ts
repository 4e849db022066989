// The command itself: green on the engine as it is, red when a guard is taken out of it. A run starts
// two servers and several processes, so each waits for the one before.
import { describe, expect, test } from "vitest";
import type { Figures } from "../../fault/verdict.js";
import { spawnTs } from "../support/process.js";

const PATIENCE_MS = 120_000;

interface Ended {
  readonly code: number | null;
  readonly figures: Figures;
}

/** The command line in one text, as people type it. */
async function fault(line: string): Promise<Ended> {
  const run = spawnTs("fault/main.ts", [...line.split(" "), "--json"]);
  const last = await run.line((line) => line.startsWith("{"));
  return { code: await run.exit, figures: JSON.parse(last) as Figures };
}

describe("npm run fault", () => {
  test(
    "a fault run passes when workers are killed, disconnected and stopped, and every limit was full",
    { timeout: PATIENCE_MS },
    async () => {
      const only = ["kill", "term", "lose-settle", "pause", "run-cancel", "run-window"];
      // Long enough for flows with every window to begin on a busy machine.
      const { code, figures } = await fault(`--seconds 30 --only ${only.join(",")}`);
      expect(figures.findings).toEqual([]);
      expect(figures.faults.map(({ fault }) => fault)).toEqual(only);
      expect(figures.faults.filter(({ bites }) => bites === 0)).toEqual([]);
      expect(figures.limits.filter(({ peak, slots }) => peak !== slots)).toEqual([]);
      expect(figures.audit.accepted.succeeded).toBeGreaterThan(0);
      expect(figures.audit.flows.succeeded).toBeGreaterThan(0);
      expect(code).toBe(0);
    },
  );

  test("a fault run fails when zombies are not fenced", { timeout: PATIENCE_MS }, async () => {
    // Each worker has as many open transactions as possible, so a frozen worker is frozen inside some.
    const load = "--types posted --workers 3";
    const { code, figures } = await fault(`--seconds 8 --calm 0 --only freeze --sabotage fence ${load}`);
    expect(figures.audit.findings.wrong.first.join()).toContain("its effect happened 2 times");
    expect(code).toBe(1);
  });

  test("a fault run fails when leases end without a cause", { timeout: PATIENCE_MS }, async () => {
    const { code, figures } = await fault("--seconds 6 --calm 0 --only kill --sabotage lease");
    expect(figures.findings.join()).toContain("leases were lost although nothing disturbed");
    expect(code).toBe(1);
  });

  test("a fault run fails when an order key starts its youngest task", { timeout: PATIENCE_MS }, async () => {
    const { code, figures } = await fault("--seconds 8 --calm 0 --only kill --sabotage order-head");
    expect(figures.audit.findings.outOfOrder.count).toBeGreaterThan(0);
    expect(code).toBe(1);
  });

  test("a fault run fails when a window admits too many items", { timeout: PATIENCE_MS }, async () => {
    const load = "--types fan-collect,fan-finish";
    const { code, figures } = await fault(`--seconds 3 --calm 0 --only kill --sabotage window ${load}`);
    expect(figures.audit.findings.aboveWindow.count).toBeGreaterThan(0);
    expect(code).toBe(1);
  });

  test(
    "a fault run fails when two concurrent last completions do not see each other",
    { timeout: PATIENCE_MS },
    async () => {
      const load = "--types fan-collect,map";
      const { code, figures } = await fault(`--seconds 3 --calm 0 --only kill --sabotage run-lock ${load}`);
      expect(figures.audit.findings.notEnded.count).toBeGreaterThan(0);
      expect(code).toBe(1);
    },
  );

  test("a fault run fails when claims pass over runnable tasks", { timeout: PATIENCE_MS }, async () => {
    const { code, figures } = await fault("--seconds 8 --only pause --sabotage pass-over");
    const found = Object.entries(figures.audit.findings).filter(([, { count }]) => count > 0);
    expect(found.map(([kind]) => kind)).toEqual(["starved"]);
    expect(code).toBe(1);
  });

  test("a fault run fails when a lease lasts until the clock has caught up", { timeout: PATIENCE_MS }, async () => {
    const { code, figures } = await fault("--seconds 3 --calm 6 --only clock-back --sabotage set-back");
    expect(figures.audit.findings.slowRecovery.count).toBeGreaterThan(0);
    expect(code).toBe(1);
  });

  test("a fault run refuses an unknown fault and lists the known ones", async () => {
    const run = spawnTs("fault/main.ts", ["--only", "meteor"]);
    expect(await run.exit).toBe(2);
  });
});
