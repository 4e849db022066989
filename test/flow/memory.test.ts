import { expect, test } from "vitest";
import { contractOf, type WorkType } from "../fault/programs/work.js";
import { startMember } from "../support/fleet.js";
import { ended, scene } from "./scene.js";

const heavy: WorkType = { name: "heavy" };
const MIB = 1024 * 1024;

test("10,000 tasks do not grow memory", async () => {
  const s = await scene();
  const padding = "x".repeat(4_000);
  function* inputs(): Generator<{ ms: number; padding: string }> {
    for (let i = 0; i < 10_000; i++) yield { ms: 2, padding };
  }
  await s.sluice.enqueueMany(contractOf(heavy), inputs());
  const { process, end } = await startMember("test/fault/programs/memory.ts", "m", {
    url: s.url,
    types: [heavy],
    worker: { maxConcurrentTasks: 100 },
  });
  const line = await process.line((text) => text.startsWith("memory "));
  const { samples, inFlightMax } = JSON.parse(line.slice("memory ".length)) as {
    samples: number[];
    inFlightMax: number;
  };
  await ended(s, 10_000);

  expect(samples).toHaveLength(10);
  // 40 MB of inputs went through. What stays is less than a hundredth of it; a backlog in memory
  // would have shown in the first samples, a leak of a kilobyte per task in the last.
  expect(samples.at(-1)! - samples[0]!).toBeLessThan(2 * MIB);
  expect(Math.max(...samples) - Math.min(...samples)).toBeLessThan(8 * MIB);
  expect(inFlightMax).toBe(100);
  expect(await end()).toBe(0);
});
