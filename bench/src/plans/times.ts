import { median, nowMs } from "../numbers.js";
import type { Call } from "./calls.js";
import type { PlanSession } from "./session.js";

/** How long a call takes, in milliseconds. */
export interface Times {
  readonly median: number;
  readonly min: number;
  readonly max: number;
  readonly calls: number;
}

const CALLS = 20;
const WARM_UP = 3;
const SLOT_CALLS = 100;

/** As the session sees it, without the commit: it belongs to the disk. */
export async function timesOf(session: PlanSession, call: Call): Promise<Times> {
  const all: number[] = [];
  for (let i = -WARM_UP; i < CALLS; i++) {
    const ms = await session.undone(async () => {
      const ask = await call.prepare(session);
      return timed(() => session.step(ask));
    });
    if (i >= 0) all.push(ms);
  }
  return summary(all);
}

/** What a task costs to claim and to settle, alone: with a slot that is taken and given back, and without. */
export interface SlotTimes {
  readonly acquire: Times;
  readonly release: Times;
  readonly claimPlain: Times;
  readonly settlePlain: Times;
}

export async function slotTimes(session: PlanSession, limited: string, plain: string): Promise<SlotTimes> {
  const slot: Pair[] = [];
  const none: Pair[] = [];
  for (let i = -WARM_UP; i < SLOT_CALLS; i++) {
    const pairs = [await one(session, limited), await one(session, plain)] as const;
    if (i < 0) continue;
    slot.push(pairs[0]);
    none.push(pairs[1]);
  }
  return {
    acquire: summary(slot.map((p) => p.claimMs)),
    release: summary(slot.map((p) => p.settleMs)),
    claimPlain: summary(none.map((p) => p.claimMs)),
    settlePlain: summary(none.map((p) => p.settleMs)),
  };
}

interface Pair {
  readonly claimMs: number;
  readonly settleMs: number;
}

function one(session: PlanSession, type: string): Promise<Pair> {
  const streams = session.streams([type]);
  return session.undone(async () => {
    let hand: Awaited<ReturnType<PlanSession["step"]>> | undefined;
    const claimMs = await timed(async () => (hand = await session.step({ streams, claim: 1 })));
    if (hand?.ids.length !== 1) throw new Error(`no task of ${type} to claim`);
    const settle = hand;
    return { claimMs, settleMs: await timed(() => session.step({ streams, claim: 0, settle })) };
  });
}

async function timed(work: () => Promise<unknown>): Promise<number> {
  const begin = nowMs();
  await work();
  return nowMs() - begin;
}

function summary(all: readonly number[]): Times {
  return {
    median: median(all),
    min: Math.min(...all),
    max: Math.max(...all),
    calls: all.length,
  };
}
