import { expect, test } from "vitest";
import type { Sluice } from "../../src/index.js";
import { loseLease, stall, type TestSluice } from "../../src/testing/index.js";
import { kit } from "../testing/kit.js";
import { nightlyStarter, scheduleNightly } from "./workflows.page.js";

const DAY = 86_400_000;

test("the schedule on the workflows page starts one run per tick, even if the starting task runs twice", async () => {
  // The kit takes its handlers before the Sluice exists that they start runs with.
  const made: TestSluice[] = [];
  const late = { start: (...args: Parameters<Sluice["start"]>) => made[0]!.sluice.start(...args) };
  const starter = nightlyStarter(late as Sluice);
  const t = await kit({ handlers: [starter], now: new Date("2031-01-01T00:00:00Z") });
  made.push(t);
  await scheduleNightly(t.sluice);
  await t.drain();
  await t.clock.set(new Date("2031-01-01T02:00:00Z"));
  const faults = [stall(starter.contract), loseLease(starter.contract)];
  const { ran } = await t.drain({ faults });
  expect(ran.map(({ outcome }) => outcome).filter((o) => o === "succeeded")).toHaveLength(1);
  expect(ran.length).toBeGreaterThan(1);
  const first = await t.sluice.runs();
  expect(first.runs.map(({ workflow }) => workflow)).toEqual(["nightly"]);
  await t.clock.advance(DAY);
  await t.drain();
  expect((await t.sluice.runs()).runs).toHaveLength(2);
});
