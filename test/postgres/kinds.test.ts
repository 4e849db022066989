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

test("slots of one total that a step gives back start tasks of types with many groups", async () => {
  expect(await observe(slotsLeftOfOneTotal)).toEqual(wanted(slotsLeftOfOneTotal));
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

test("a note of a slot is not used up while what it wakes is in another claim's hand", () => holds(kindInHand));

test("a slot whose return was noted for another stream alone is found", () => holds(laterUse));

test("a kind keeps its note while another claim deletes an older one", () => holds(rowsOfOneKind));

test("the slot of a total that many groups share goes to the best task of all groups", () => holds(bestOfAll));

test("a step uses the slot of a shared total that it has freed itself", () => holds(ownSharedSlot));

test("a slot that is kept for a task of one of many groups is found by it", () => holds(keptShared));

test("of a hundred groups at a shared total the one that can run is found by one claim", () => holds(oneOfMany));

test("groups that are full for long leave no notes behind", () => holds(noGrowth));

test("a claim reads no more pages beside 2,000 full groups than beside 100", async () => {
  const pages: number[] = [];
  for (const groups of [100, 2_000]) {
    const scene = await Scene.open();
    pages.push(await pagesBeside(scene, groups));
    await scene.close();
  }
  expect(pages[1]).toBeLessThan(1.5 * pages[0]! + 20);
});
