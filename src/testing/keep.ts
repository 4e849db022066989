import type { Logger } from "../core/ports.js";
import type { History } from "../keeper/keeper.js";
import { tick } from "../keeper/tick.js";
import { due, keepLanes, pruneDone, pruneNotes, reap } from "../postgres/keep.js";
import type { Line } from "../postgres/line.js";
import { dueSchedules } from "../postgres/schedule.js";

// What a keeper does at its intervals, done when a drain asks for it.

interface KeepDesk {
  readonly line: Line;
  readonly log: Logger;
  readonly history: History;
}

const DUE_MAX = 1_000;
const LANES_MAX = 500;
const NOTES_MAX = 2_000;
const STEPS_MAX = 200;
// An outcome that somebody waited for is kept this long even where history is off.
const AWAITED_MS = 60_000;

/** Takes back what dead workers held, and forgets what is older than its time. */
export async function tidyUp({ line, history }: KeepDesk): Promise<void> {
  await reap(line);
  const atLeast = (ms: number): number => Math.max(ms, AWAITED_MS);
  const older = {
    succeededMs: atLeast(history.succeededMs),
    failedMs: atLeast(history.failedMs),
    cancelledMs: atLeast(history.cancelledMs),
  };
  for (let i = 0; i < STEPS_MAX && !(await pruneDone(line, older)).rested; i++);
  for (let i = 0; i < STEPS_MAX && (await pruneNotes(line, NOTES_MAX)) === NOTES_MAX; i++);
}

/** Enqueues what recurs and lets go on what was scheduled, as far as their time has come. */
export async function dueNow({ line, log }: KeepDesk): Promise<void> {
  for (let i = 0; i < STEPS_MAX && (await tick(line, log)).nextMs === 0; i++);
  for (let i = 0; i < STEPS_MAX && (await due(line, DUE_MAX)).moved === DUE_MAX; i++);
}

/** How long until something is due again; null if nothing ever is. */
export async function nextDueMs({ line }: KeepDesk): Promise<number | null> {
  const { nextMs } = await due(line, 0);
  const { waitMs } = await dueSchedules(line, 1);
  const times = [nextMs, waitMs].filter((ms) => ms !== null);
  return times.length === 0 ? null : Math.min(...times);
}

/** Looks at lanes that no claim has looked at. Whether there were any. */
export async function lookAtLanes({ line }: KeepDesk): Promise<boolean> {
  return (await keepLanes(line, LANES_MAX)) > 0;
}
