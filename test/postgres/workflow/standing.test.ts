import { expect, test } from "vitest";
import { observe, wanted } from "../schedules/schedule.js";
import { manyFans, noteOfHeldRun, resumedInHand, startOfOldSnapshot } from "./standing.js";

test("a note of a run that another has in hand is left alone, and stops nobody", async () => {
  expect(await observe(noteOfHeldRun)).toEqual(wanted(noteOfHeldRun));
});

test("a fan-out in a placer's hand that needs no code any more when it is resumed stops nobody", async () => {
  expect(await observe(resumedInHand)).toEqual(wanted(resumedInHand));
});

test("a graph that was deleted after the caller's snapshot is not started", async () => {
  expect(await observe(startOfOldSnapshot)).toEqual(wanted(startOfOldSnapshot));
});

test("of many fan-outs that begin at once 5,000 items are made, the rest by transactions of their own", async () => {
  expect(await observe(manyFans)).toEqual(wanted(manyFans));
});
