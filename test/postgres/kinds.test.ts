import { expect, test } from "vitest";
import { Scene } from "../support/sql.js";
import {
  freeGroup,
  lateFlag,
  missedSlot,
  pagesBeside,
  returnedSlots,
  sharedTotal,
  slotsLeft,
} from "./schedules/kinds.js";
import { observe, wanted } from "./schedules/schedule.js";

test("a task of a free group is claimed at once beside thousands of full groups", async () => {
  expect(await observe(freeGroup)).toEqual(wanted(freeGroup));
});

test.each(Object.keys(returnedSlots) as (keyof typeof returnedSlots)[])(
  "a slot that comes back to one of thousands of full groups starts its next task: %s",
  async (how) => {
    expect(await observe(returnedSlots[how])).toEqual(wanted(returnedSlots[how]));
  },
);

test("slots that a step gives back beside its claim start the next tasks of full groups", async () => {
  expect(await observe(slotsLeft)).toEqual(wanted(slotsLeft));
});

test("a slot that comes back while a claim finds its total full is not missed", async () => {
  expect(await observe(missedSlot)).toEqual(wanted(missedSlot));
});

test("a slot of a total that thousands of sets share starts one task", async () => {
  expect(await observe(sharedTotal)).toEqual(wanted(sharedTotal));
});

test("tasks that waited before their stream had many groups are claimed", async () => {
  expect(await observe(lateFlag)).toEqual(wanted(lateFlag));
});

test("a claim reads no more pages beside 2,000 full groups than beside 100", async () => {
  const pages: number[] = [];
  for (const groups of [100, 2_000]) {
    const scene = await Scene.open();
    pages.push(await pagesBeside(scene, groups));
    await scene.close();
  }
  expect(pages[1]).toBeLessThan(1.5 * pages[0]! + 20);
});
