import { expect, test } from "vitest";
import { Scene } from "../support/sql.js";
import {
  bestOfAll,
  freeGroup,
  keptShared,
  kindInHand,
  laterUse,
  lateFlag,
  missedSlot,
  noGrowth,
  oneOfMany,
  ownSharedSlot,
  pagesBeside,
  returnedSlots,
  rowsOfOneKind,
  sharedTotal,
  slotsLeft,
  slotsLeftOfOneTotal,
} from "./schedules/kinds.js";
import { observe, wanted, type Schedule } from "./schedules/schedule.js";

const holds = async (s: Schedule): Promise<void> => expect(await observe(s)).toEqual(wanted(s));

test("a task of a free group is claimed immediately beside thousands of full groups", async () => {
  expect(await observe(freeGroup)).toEqual(wanted(freeGroup));
});

test.each(Object.keys(returnedSlots) as (keyof typeof returnedSlots)[])(
  "a slot returned to one of thousands of full groups starts its next task: %s",
  async (how) => {
    expect(await observe(returnedSlots[how])).toEqual(wanted(returnedSlots[how]));
  },
);

test("slots that a step returns beside its claim start the next tasks of full groups", async () => {
  expect(await observe(slotsLeft)).toEqual(wanted(slotsLeft));
});

test("slots of one total that a step returns start tasks of types with many groups", async () => {
  expect(await observe(slotsLeftOfOneTotal)).toEqual(wanted(slotsLeftOfOneTotal));
});

test("a slot returned while a claim finds its total full is not missed", async () => {
  expect(await observe(missedSlot)).toEqual(wanted(missedSlot));
});

test("a slot of a total shared by thousands of sets starts one task", async () => {
  expect(await observe(sharedTotal)).toEqual(wanted(sharedTotal));
});

test("tasks that waited before their stream had many groups are claimed", async () => {
  expect(await observe(lateFlag)).toEqual(wanted(lateFlag));
});

test("a note of a returned slot is kept while another claim has locked the kind it wakes", () => holds(kindInHand));

test("a returned slot that was noted only for another stream is found", () => holds(laterUse));

test("a kind keeps its note while another claim deletes an older one", () => holds(rowsOfOneKind));

test("the slot of a total that many groups share goes to the best task of all groups", () => holds(bestOfAll));

test("a step uses the slot of a shared total that it has freed itself", () => holds(ownSharedSlot));

test("a slot kept for a task of one of many groups is found by that task", () => holds(keptShared));

test("one claim finds the only runnable group among a hundred groups at a shared total", () => holds(oneOfMany));

test("groups that stay full leave no notes behind", () => holds(noGrowth));

test("a claim reads no more pages beside 2,000 full groups than beside 100", async () => {
  const pages: number[] = [];
  for (const groups of [100, 2_000]) {
    const scene = await Scene.open();
    pages.push(await pagesBeside(scene, groups));
    await scene.close();
  }
  expect(pages[1]).toBeLessThan(1.5 * pages[0]! + 20);
});
