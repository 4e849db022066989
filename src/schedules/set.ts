import { SluiceError } from "../core/error.js";
import type { Database } from "../postgres/database.js";
import { unknownName } from "../postgres/known.js";
import {
  clockMs,
  lookAtSchedule,
  resumeSchedule,
  setSchedule,
  type ScheduleStatus,
  type ScheduleTerms,
  type SeenSchedule,
} from "../postgres/schedule.js";
import { fire, planOf } from "./fire.js";
import { timetableOf, type Timing } from "./timing.js";

// Each try fails only because another process has just changed the schedule, so some process always makes progress.
const TRIES_MAX = 100;

/** Makes the terms the schedule's terms, for all processes. Unchanged terms have no effect. */
export async function writeSchedule(db: Database, name: string, terms: ScheduleTerms): Promise<ScheduleStatus> {
  return until(name, async () => {
    const seen = await lookAtSchedule(db, name);
    if (seen?.digest === terms.digest) return seen.status;
    const nextAt = await nextOf(db, seen, terms);
    if (nextAt !== null) await setSchedule(db, name, seen?.revision ?? null, terms, nextAt);
    return null;
  });
}

/** Lets a schedule tick again, with the first tick from now. */
export async function resume(db: Database, name: string): Promise<void> {
  await until(name, async () => {
    const { status, revision } = await seenSchedule(db, name);
    if (!status.paused) return status;
    await resumeSchedule(db, name, revision, await nextAfterNow(db, status, status.lastAt));
    return null;
  });
}

/** Returns the schedule of this name, or throws `unknown_schedule`. */
export async function seenSchedule(db: Database, name: string): Promise<SeenSchedule> {
  const seen = await lookAtSchedule(db, name);
  if (seen === null) throw await unknownName(db, "schedule", name);
  return seen;
}

/** Reads and acts repeatedly until `look` returns a result. */
async function until(name: string, look: () => Promise<ScheduleStatus | null>): Promise<ScheduleStatus> {
  for (let tries = 0; tries < TRIES_MAX; tries++) {
    const found = await look();
    if (found !== null) return found;
  }
  throw new SluiceError("database_busy", `schedule ${name} was changed by others at the same time: try again`);
}

/** Returns the tick with which a changed schedule continues; null if the schedule must be read again. */
async function nextOf(db: Database, seen: SeenSchedule | null, terms: ScheduleTerms): Promise<Date | null> {
  if (seen === null) return nextAfterNow(db, terms, null);
  const { nextAt, lastAt, trouble } = seen.status;
  if (nextAt === null) return nextAfterNow(db, terms, lastAt);
  // A tick that is due stays due.
  // guard: a tick that is owed stays owed -> test/schedules/set.test.ts: "keeps an overdue tick if its timing is unchanged, and enqueues it with the new input"
  /* guard:owed-tick */ if (sameTiming(seen.status, terms)) return nextAt; /* end */
  // guard: what was due under the old timing is enqueued first -> test/schedules/set.test.ts: "enqueues ticks due under the old timing before it continues with the new one"
  /* guard:due-first */ if (trouble === null && (await fireIfDue(db, seen, nextAt))) return null; /* end */
  return nextAfterNow(db, terms, lastAt);
}

/** Returns whether ticks of the old timing were due, so that this or another process enqueues them now. */
async function fireIfDue(db: Database, seen: SeenSchedule, nextAt: Date): Promise<boolean> {
  const nowMs = await clockMs(db);
  if (nextAt.getTime() > nowMs) return false;
  const due = { ...seen.status, ...seen, nextAtMs: nextAt.getTime() };
  await fire(db, due, planOf(due, nowMs));
  return true;
}

/**
 * Returns the first tick from now by the database's clock, and after the last enqueued one: the clock may be set back.
 */
async function nextAfterNow(db: Database, timing: Timing, lastAt: Date | null): Promise<Date> {
  const nowMs = Math.max(await clockMs(db), lastAt?.getTime() ?? 0);
  return new Date(timetableOf(timing).next(nowMs));
}

function sameTiming(a: Timing, b: Timing): boolean {
  return a.cron === b.cron && a.timeZone === b.timeZone && a.everyMs === b.everyMs;
}
