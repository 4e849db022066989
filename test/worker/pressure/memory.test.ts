import { describe, expect, onTestFinished, test } from "vitest";
import { makeGroup } from "../../../examples/pressure/group.js";
import { task, type } from "../../../src/index.js";
import { ended, scene, type Scene } from "../../flow/scene.js";
import { spawnTs } from "../../support/process.js";
import type { ProgramConfig, ProgramReport } from "./program.js";

const MB = 1024 * 1024;
const LONG = { timeout: 120_000 };
const job = task("job", { input: type<{ text: string }>() });

async function enqueue(s: Scene, tasks: number, bytes: number): Promise<void> {
  const input = { text: "x".repeat(bytes) };
  function* inputs(): Generator<{ text: string }> {
    for (let i = 0; i < tasks; i++) yield input;
  }
  await s.sluice.enqueueMany(job, inputs());
}

/** Runs the program to its end, and returns its report. */
async function run(config: ProgramConfig, heapMb: number): Promise<ProgramReport> {
  const program = spawnTs("test/worker/pressure/program.ts", [], {
    FLEET_CONFIG: JSON.stringify(config),
    NODE_OPTIONS: `--max-old-space-size=${heapMb}`,
  });
  onTestFinished(async () => void (await program.kill("SIGKILL")));
  const line = await program.line((text) => text.startsWith("report "));
  expect(await program.exit).toBe(0);
  return JSON.parse(line.slice("report ".length)) as ProgramReport;
}

describe("a process with a heap of 64 MB", () => {
  test(
    "a worker with a heap of 64 MB processes 150 MB of inputs in bounded memory, with default settings",
    LONG,
    async () => {
      const s = await scene();
      await enqueue(s, 1_500, 100 * 1024);
      const { rssBefore, rssMax } = await run({ url: s.url, tasks: 1_500, workMs: 300 }, 64);
      await ended(s, 1_500);
      expect((rssMax - rssBefore) / MB).toBeLessThan(150);
    },
  );

  test("a worker halves its claims while the heap is nearly full, and recovers", async () => {
    const s = await scene();
    await enqueue(s, 2_000, 100);
    const hog = { of: "heap", bytes: 60 * MB } as const;
    const report = await run({ url: s.url, tasks: 2_000, workMs: 2, hog }, 64);
    await ended(s, 2_000);
    expect(report).toMatchObject({ gulpMax: 50, gulpMaxHogged: 25, stateAfter: "normal" });
    expect(report.reasonsHogged).toContain("memory");
  });
});

const groupBytes = 300 * MB;
const probe = makeGroup(groupBytes);
probe?.remove();

describe("a process in a control group of 300 MB", () => {
  test.runIf(probe === null)("this system allows no control groups, so the test of a real one is skipped", () => {
    expect(makeGroup(groupBytes)).toBeNull();
  });

  test.runIf(probe !== null)(
    "a worker halves its claims while a real control group is nearly full, and recovers",
    async () => {
      const group = makeGroup(groupBytes)!;
      onTestFinished(() => group.remove());
      const s = await scene();
      await enqueue(s, 2_000, 100);
      const hog = { of: "buffers", bytes: 290 * MB } as const;
      const report = await run({ url: s.url, tasks: 2_000, workMs: 2, procs: group.procs, hog }, 512);
      await ended(s, 2_000);
      expect(report).toMatchObject({ gulpMax: 50, gulpMaxHogged: 25, stateAfter: "normal" });
      expect(report.reasonsHogged).toContain("memory");
    },
  );
});
