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

test("two last completers advance once", async () => {
  expect(await observe(twoLastCompleters)).toEqual(wanted(twoLastCompleters));
});

test("a completion beside a cancel starts nothing", async () => {
  expect(await observe(cancelBesideCompletion)).toEqual(wanted(cancelBesideCompletion));
});

test("after the first failure of a fail-fast fan-out none of the others starts", async () => {
  expect(await observe(firstFails)).toEqual(wanted(firstFails));
});

test("an item that was asked to stop while it was handed back is cancelled all the same", async () => {
  expect(await observe(handedBackWhileAsked)).toEqual(wanted(handedBackWhileAsked));
});

test("an item of many that was asked to stop while it was handed back is counted once", async () => {
  expect(await observe(handedBackOfMany)).toEqual(wanted(handedBackOfMany));
});

test("what a task had fanned out goes on if the task is retried before anybody cancels it", async () => {
  expect(await observe(retriedBesideOrphan)).toEqual(wanted(retriedBesideOrphan));
});

test("a retry waits for nobody who holds what a task of the run had fanned out", async () => {
  expect(await observe(retriedBesideHolder)).toEqual(wanted(retriedBesideHolder));
});

test("a parent that goes to sleep beside its last child wakes", async () => {
  expect(await observe(sleepBesideLastChild)).toEqual(wanted(sleepBesideLastChild));
});

test("a parent whose cancel rolled back after its last child had ended wakes", async () => {
  expect(await observe(cancelOfSleeperRollsBack)).toEqual(wanted(cancelOfSleeperRollsBack));
});

test("after failures of two fail-fast fan-outs at once none of the others starts", async () => {
  expect(await observe(twoFail)).toEqual(wanted(twoFail));
});

test("an item that is handed back beside the first failure lets no other through", async () => {
  expect(await observe(failBesideHandBack)).toEqual(wanted(failBesideHandBack));
});

test("two who free slots of one window at once lose none", async () => {
  expect(await observe(twoFree)).toEqual(wanted(twoFree));
});

test("of two that open the same map at the same moment one makes it and the other finds it", async () => {
  expect(await observe(mapOpenedTwice)).toEqual(wanted(mapOpenedTwice));
});

test("a map that is made beside a pause of its task's run is paused, whoever comes first", async () => {
  expect(await observe(pausedBesideMaker)).toEqual(wanted(pausedBesideMaker));
  expect(await observe(madeBesidePause)).toEqual(wanted(madeBesidePause));
});

test("a map that is in another's hand when its task's run is cancelled is shut all the same", async () => {
  expect(await observe(cancelledBesideHolders)).toEqual(wanted(cancelledBesideHolders));
});

test("a task that is retried before what it made is cancelled keeps it", async () => {
  expect(await observe(retriedBesideCancel)).toEqual(wanted(retriedBesideCancel));
});

test("while another holds its run, a pause stops no worker, and says so in the end", async () => {
  expect(await observe(pausedBesideHolder)).toEqual(wanted(pausedBesideHolder));
});
