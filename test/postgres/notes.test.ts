import { expect, test } from "vitest";
import {
  backlogOfNotes,
  cancelIsCommitted,
  freshNotesKeepComing,
  joinedBehindLockedHead,
  oneOfTwoKinds,
  quiet,
  rolledBackBeside,
  stuckKeys,
  transactionStaysOpen,
  twoStayOpen,
} from "./schedules/notes.js";
import { observe, wanted, type Schedule } from "./schedules/schedule.js";

// The schedules are in files of their own, because mutants.test.ts runs some of them on mutated schemas.
async function holds(...schedules: Schedule[]): Promise<void> {
  for (const s of schedules) expect(await observe(s)).toEqual(wanted(s));
}

test("a new task is admitted by the next claim although thousands of notes are older", () => holds(backlogOfNotes));

test("old notes are processed although new ones keep coming", () => holds(freshNotesKeepComing));

test("waiters locked by an open transaction leave no notes and are found when it rolls back", () =>
  holds(transactionStaysOpen("order"), transactionStaysOpen("perKey"), transactionStaysOpen("order", true)));

test("tasks that join behind a locked head postpone its order key only once", () => holds(joinedBehindLockedHead));

test("the first of two open transactions to end brings its waiter back", () => holds(twoStayOpen));

test("the commit of a cancel lets the next claim start the task behind it", () => holds(cancelIsCommitted));

test("thousands of keys whose tasks are all stuck cause no work for the keeper", () => holds(stuckKeys));

test("a waiter of a rolled-back cancel is admitted beside thousands of keys whose tasks are stuck", () =>
  holds(rolledBackBeside));

test("an enqueue with sluice.ring = off sends no notification, delayed or not", () => holds(quiet));

test("a key is checked again when one of its stuck kinds can run", () => holds(oneOfTwoKinds));
