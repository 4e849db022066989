import { expect, test } from "vitest";
import { observe, wanted } from "../schedules/schedule.js";
import {
  committedBesideLook,
  manyFans,
  noteOfHeldRun,
  notesOfHeldRun,
  resumedInHand,
  startBesideLook,
  startOfOldActivity,
  startOfOldSnapshot,
} from "./standing.js";

test("a note of a run that another has in hand is left alone, and stops nobody", async () => {
  expect(await observe(noteOfHeldRun)).toEqual(wanted(noteOfHeldRun));
});

test("100 notes of a run that another has in hand keep no other run's note waiting", async () => {
  expect(await observe(notesOfHeldRun)).toEqual(wanted(notesOfHeldRun));
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

test("runs stay active while a start is not committed", async () => {
  expect(await observe(startBesideLook)).toEqual(wanted(startBesideLook));
});

test("runs stay active for one that is committed while a keeper looks", async () => {
  expect(await observe(committedBesideLook)).toEqual(wanted(committedBesideLook));
});

test("a start whose snapshot shows that runs were active fails if they are not any more", async () => {
  expect(await observe(startOfOldActivity)).toEqual(wanted(startOfOldActivity));
});
