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

test("a note of a run that another session has locked is skipped, and blocks no other", async () => {
  expect(await observe(noteOfHeldRun)).toEqual(wanted(noteOfHeldRun));
});

test("100 notes of a locked run do not delay the note of another run", async () => {
  expect(await observe(notesOfHeldRun)).toEqual(wanted(notesOfHeldRun));
});

test("a locked fan-out that needs no code after a resume blocks no other session", async () => {
  expect(await observe(resumedInHand)).toEqual(wanted(resumedInHand));
});

test("a graph that was deleted after the caller's snapshot is not started", async () => {
  expect(await observe(startOfOldSnapshot)).toEqual(wanted(startOfOldSnapshot));
});

test("a step that starts many fan-outs creates 5,000 items, and other transactions create the rest", async () => {
  expect(await observe(manyFans)).toEqual(wanted(manyFans));
});

test("runs stay active while a start is not committed", async () => {
  expect(await observe(startBesideLook)).toEqual(wanted(startBesideLook));
});

test("runs stay active for a run that is committed during the keeper's check", async () => {
  expect(await observe(committedBesideLook)).toEqual(wanted(committedBesideLook));
});

test("a start with a snapshot in which runs were active fails if they no longer are", async () => {
  expect(await observe(startOfOldActivity)).toEqual(wanted(startOfOldActivity));
});
