import type { Logger } from "../core/ports.js";
import type { History } from "../keeper/keeper.js";
import { due, keepLanes, pruneDone, pruneExpired, reap } from "../postgres/keep.js";
import type { Connection } from "../postgres/connection.js";
import { dueSchedules } from "../postgres/schedule.js";
import { cancelOrphans, keepRuns, pruneRuns } from "../postgres/workflow/keep.js";
import type { PlaceCrew } from "../runs/place.js";
import { placeNext } from "../runs/placer.js";
import { tick } from "../schedules/tick.js";

// The work that a keeper does at intervals, done here when a drain requests it.

interface KeepServices {
  readonly connection: Connection;
  readonly log: Logger;
  readonly history: History;
  readonly placing: PlaceCrew;
}

const DUE_MAX = 1_000;
const LANES_MAX = 500;
const NOTES_MAX = 2_000;
const RUNS_MAX = 1_000;
const ORPHANS_MAX = 100;
const STEPS_MAX = 200;
// An outcome that a caller waited for is kept this long even if history is off.
const AWAITED_MS = 60_000;

/** Reclaims the tasks of dead workers, and deletes history that is past its retention. */
export async function tidyUp({ connection, history }: KeepServices): Promise<void> {
  await reap(connection);
  const atLeast = (ms: number): number => Math.max(ms, AWAITED_MS);
  const older = {
    succeededMs: atLeast(history.succeededMs),
    failedMs: atLeast(history.failedMs),
    cancelledMs: atLeast(history.cancelledMs),
  };
  for (let i = 0; i < STEPS_MAX && !(await pruneDone(connection, older)).rested; i++);
  for (let i = 0; i < STEPS_MAX && (await pruneExpired(connection, NOTES_MAX)) === NOTES_MAX; i++);
  for (let i = 0; i < STEPS_MAX && (await pruneRuns(connection, older, NOTES_MAX)).pruned > 0; i++);
}

/** Enqueues recurring tasks and makes scheduled tasks runnable, if they are due. */
export async function dueNow(services: KeepServices): Promise<void> {
  const { connection, log } = services;
  for (let i = 0; i < STEPS_MAX && (await tick(connection, log)).nextMs === 0; i++);
  for (let i = 0; i < STEPS_MAX && (await due(connection, DUE_MAX)).moved === DUE_MAX; i++);
  for (let i = 0; i < STEPS_MAX && (await moveRuns(services)); i++);
}

/**
 * Advances runs: processes events, timers and tasks to cancel, and places tasks that need a transaction of their own.
 */
async function moveRuns({ connection, placing }: KeepServices): Promise<boolean> {
  const { moved, unplaced } = await keepRuns(connection, RUNS_MAX);
  const placed = unplaced && (await placeNext(placing));
  return moved > 0 || placed;
}

/** Time until something is due again, in ms; null if nothing ever is. */
export async function nextDueMs({ connection }: KeepServices): Promise<number | null> {
  const { nextMs } = await due(connection, 0);
  const { waitMs } = await dueSchedules(connection, 1);
  const { nextMs: timerMs } = await keepRuns(connection, RUNS_MAX);
  const times = [nextMs, waitMs, timerMs].filter((ms) => ms !== null);
  return times.length === 0 ? null : Math.min(...times);
}

/** Checks what no claim checks: lanes, and fan-outs whose task has ended. Returns whether there were any. */
export async function lookAround({ connection }: KeepServices): Promise<boolean> {
  const looked = await keepLanes(connection, LANES_MAX);
  return looked + (await cancelOrphans(connection, ORPHANS_MAX)).cancelled > 0;
}
