import { expect, test } from "vitest";
import { contractOf, type WorkType } from "../fault/programs/work.js";
import { startMember } from "../support/fleet.js";
import { ended, scene } from "./scene.js";

const heavy: WorkType = { name: "heavy" };
const MIB = 1024 * 1024;

test("memory does not grow while 10,000 tasks run", async () => {
  const s = await scene();
  const padding = "x".repeat(4_000);
  function* inputs(): Generator<{ ms: number; padding: string }> {
    for (let i = 0; i < 10_000; i++) yield { ms: 2, padding };
  }
  await s.sluice.enqueueMany(contractOf(heavy), inputs());
  const member = await startMember("test/fault/programs/memory.ts", "m", {
    url: s.url,
    types: [heavy],
    worker: { maxConcurrentTasks: 100 },
  });
  const line = await member.process.line((text) => text.startsWith("memory "));
  const { samples, inFlightMax } = JSON.parse(line.slice("memory ".length)) as {
    samples: number[];
    inFlightMax: number;
  };
  await ended(s, 10_000);

  expect(samples).toHaveLength(10);
  // 40 MB of inputs have passed. A backlog in memory would show immediately; a leak of half a kilobyte
  // per task would show between the middle, when all code is warm, and the end.
  const spread = (some: readonly number[]): number => Math.max(...some) - Math.min(...some);
  expect(spread(samples), samples.join(" ")).toBeLessThan(15 * MIB);
  expect(samples.at(-1)! - Math.min(...samples.slice(4)), samples.join(" ")).toBeLessThan(2.5 * MIB);
  expect(inFlightMax).toBe(100);
  expect(await member.end()).toBe(0);
});
