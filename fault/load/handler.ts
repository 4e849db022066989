// What every handler of the load does: say that it begins, do what it is told, say how it ended.
import { setTimeout as delay } from "node:timers/promises";
import { snooze, type TaskContext } from "../../src/index.js";
import type { Claims, Ended, Heard } from "../audit/line.js";
import type { LogWriter } from "../log.js";
import { transactional, type Work } from "./terms.js";

const SNOOZE_MS_MAX = 300;
/** The codes of an abort, in the words of the log. */
const REASONS: Readonly<Record<string, string>> = {
  stopped: "shutdown",
  task_cancelled: "cancelled",
};

/** Returns its claim: what is recorded tells under which claim it ran. */
export async function handle(log: LogWriter, work: Work, ctx: TaskContext, heard?: Heard): Promise<string> {
  const ear = new Ear(ctx.signal);
  await begin(log, work, ctx, heard);
  if (transactional.includes(work.type)) return book(log, work, ctx, ear);
  const deed = work.deeds[ctx.attempt - 1] ?? null;
  await ear.heard(deed === "hang" ? null : work.ms);
  if (ear.reason !== null) return leave(log, ctx, ear);
  const failure = new Error(`attempt ${ctx.attempt} fails`);
  if (deed === "throw") return end(log, ctx, ear, said("thrown"), failure);
  // By chance, because a snooze leaves no trace by which the next run could know of it.
  if (deed === "snooze" && Math.random() < 0.5) {
    const snoozeMs = Math.ceil(Math.random() * SNOOZE_MS_MAX);
    const ended = { how: "snoozed", reason: null, snoozeMs } as const;
    return end(log, ctx, ear, ended, snooze(snoozeMs));
  }
  return end(log, ctx, ear, said("completed"), null);
}

export function begin(log: LogWriter, work: Work, ctx: TaskContext, heard?: Heard): Promise<void> {
  const told = heard === undefined ? {} : { heard };
  const { attempt } = ctx;
  return log.write([{ kind: "start", ...aboutOf(ctx), attempt, ...claimsOf(work), ...told }]);
}

/**
 * Completes in a transaction, deaf to its signal: it is the fence alone that keeps its effect from
 * happening twice. The end is told before the commit, because from then on others may start.
 */
async function book(log: LogWriter, work: Work, ctx: TaskContext, ear: Ear): Promise<string> {
  try {
    return await ctx.transaction(async (tx) => {
      await tx.query("insert into audit.effect (task) values ($1)", [ctx.id]);
      await delay(work.ms);
      await log.write([{ kind: "end", ...aboutOf(ctx), ...said("completed") }]);
      return ctx.claim;
    });
  } catch (e) {
    if (ear.reason !== null) return leave(log, ctx, ear);
    return end(log, ctx, ear, said("thrown"), e);
  }
}

export async function end(
  log: LogWriter,
  ctx: TaskContext,
  ear: Ear,
  ended: Ended & { readonly heard?: Heard },
  thrown: unknown,
): Promise<string> {
  await log.write([{ kind: "end", ...aboutOf(ctx), ...ended }]);
  // Told to stop while it said that it was done: what it says no longer counts. After a cancel it does.
  if (ear.reason !== null && ear.reason !== "cancelled") return leave(log, ctx, ear);
  if (thrown !== null) throw thrown;
  return ctx.claim;
}

/** Told to stop: the run was over when it heard so, however long the log takes. */
export async function leave(log: LogWriter, ctx: TaskContext, ear: Ear): Promise<never> {
  const agoMs = performance.now() - ear.atMs;
  await log.write([{ kind: "end", ...aboutOf(ctx), how: "left", reason: ear.reason, agoMs }]);
  throw ctx.signal.reason;
}

/** Listens for the abort from the first moment. */
export class Ear {
  readonly #signal: AbortSignal;
  atMs = 0;
  reason: string | null = null;

  constructor(signal: AbortSignal) {
    this.#signal = signal;
    const hear = (): void => {
      const { code } = signal.reason as { code?: string };
      this.atMs = performance.now();
      this.reason = REASONS[code ?? ""] ?? code ?? "unknown";
    };
    if (signal.aborted) hear();
    else signal.addEventListener("abort", hear, { once: true });
  }

  /** Resolves after so many ms (null: never), or as soon as there is something to hear. */
  async heard(ms: number | null): Promise<void> {
    if (this.reason !== null) return;
    const forever = new Promise<void>(() => {});
    const abort = new Promise<void>((resolve) => {
      this.#signal.addEventListener("abort", () => resolve(), { once: true });
    });
    await Promise.race([ms === null ? forever : delay(ms), abort]);
  }
}

function said(how: "completed" | "thrown"): Ended {
  return { how, reason: null };
}

function aboutOf(ctx: TaskContext): { task: string; claim: string } {
  return { task: ctx.id, claim: ctx.claim };
}

export function claimsOf(work: Work): Claims {
  const { ms: _ms, key: _key, otherKey: _otherKey, deeds: _deeds, ...claims } = work;
  return claims;
}
