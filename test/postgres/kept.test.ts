import { expect, test } from "vitest";
import { besideThePulse, freedForIt, neverBothFree, oldestSet, suspectAtABusyTotal } from "./schedules/kept.js";
import { observe, wanted } from "./schedules/schedule.js";

test("a freed slot is kept for the task that is first at all its totals", async () => {
  expect(await observe(neverBothFree)).toEqual(wanted(neverBothFree));
});

test("a suspect starts although the slot of its total is always reused by other tasks", async () => {
  expect(await observe(suspectAtABusyTotal)).toEqual(wanted(suspectAtABusyTotal));
});

test("a step gives a slot it has freed to the task it is kept for", async () => {
  expect(await observe(freedForIt)).toEqual(wanted(freedForIt));
});

test("a slot is kept for the first task of all, however many sets of totals there are", async () => {
  expect(await observe(oldestSet)).toEqual(wanted(oldestSet));
});

test("a keeper that locks lanes does not wait for another that updates the pulse", async () => {
  expect(await observe(besideThePulse)).toEqual(wanted(besideThePulse));
});
