import { expect, test } from "vitest";
import { observe, wanted } from "../schedules/schedule.js";
import { handedBackOfMany, retriedBesideHolder, retriedBesideOrphan } from "./again.js";
import { cancelledBesideHolders, madeBesidePause, pausedBesideMaker, retriedBesideCancel } from "./inner.js";
import { mapOpenedTwice, pausedBesideHolder } from "./placing.js";
import {
  cancelBesideCompletion,
  cancelOfSleeperRollsBack,
  firstFails,
  handedBackWhileAsked,
  sleepBesideLastChild,
  failBesideHandBack,
  twoFail,
  twoFree,
  twoLastCompleters,
} from "./schedules.js";

test("two concurrent last completions advance a run once", async () => {
  expect(await observe(twoLastCompleters)).toEqual(wanted(twoLastCompleters));
});

test("a completion beside a cancel starts nothing", async () => {
  expect(await observe(cancelBesideCompletion)).toEqual(wanted(cancelBesideCompletion));
});

test("a failFast fan-out starts no further item after its first failure", async () => {
  expect(await observe(firstFails)).toEqual(wanted(firstFails));
});

test("an item that is cancelled while it is released is still cancelled", async () => {
  expect(await observe(handedBackWhileAsked)).toEqual(wanted(handedBackWhileAsked));
});

test("one of many items that is cancelled while it is released is counted once", async () => {
  expect(await observe(handedBackOfMany)).toEqual(wanted(handedBackOfMany));
});

test("a map continues if its task is retried before the map is cancelled", async () => {
  expect(await observe(retriedBesideOrphan)).toEqual(wanted(retriedBesideOrphan));
});

test("a retry does not wait for a session that has locked a map of the run", async () => {
  expect(await observe(retriedBesideHolder)).toEqual(wanted(retriedBesideHolder));
});

test("a parent that goes to sleep while its last item ends wakes", async () => {
  expect(await observe(sleepBesideLastChild)).toEqual(wanted(sleepBesideLastChild));
});

test("a parent whose cancel rolled back after its last item had ended wakes", async () => {
  expect(await observe(cancelOfSleeperRollsBack)).toEqual(wanted(cancelOfSleeperRollsBack));
});

test("two failFast fan-outs that fail at once start no further items", async () => {
  expect(await observe(twoFail)).toEqual(wanted(twoFail));
});

test("an item that is released beside the first failure admits no other item", async () => {
  expect(await observe(failBesideHandBack)).toEqual(wanted(failBesideHandBack));
});

test("two sessions that free slots of one window at once lose none", async () => {
  expect(await observe(twoFree)).toEqual(wanted(twoFree));
});

test("one of two sessions that open the same map at once creates it, and the other finds it", async () => {
  expect(await observe(mapOpenedTwice)).toEqual(wanted(mapOpenedTwice));
});

test("a map that is created beside a pause of its run is paused, in either order", async () => {
  expect(await observe(pausedBesideMaker)).toEqual(wanted(pausedBesideMaker));
  expect(await observe(madeBesidePause)).toEqual(wanted(madeBesidePause));
});

test("a map that another session has locked is closed when its run is cancelled", async () => {
  expect(await observe(cancelledBesideHolders)).toEqual(wanted(cancelledBesideHolders));
});

test("a task that is retried before its map is cancelled keeps the map", async () => {
  expect(await observe(retriedBesideCancel)).toEqual(wanted(retriedBesideCancel));
});

test("a pause of a locked run blocks no worker, and takes effect eventually", async () => {
  expect(await observe(pausedBesideHolder)).toEqual(wanted(pausedBesideHolder));
});
