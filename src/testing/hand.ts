import { isSluiceError, SluiceError } from "../core/error.js";
import type { Clock, Logger } from "../core/ports.js";
import type { TaskContext } from "../core/context.js";
import { beat, claimSuspect, register, releaseUnknown, unregister } from "../postgres/heartbeat.js";
import { reap } from "../postgres/keep.js";
import type { Connection } from "../postgres/connection.js";
import { expire } from "../postgres/rehearse.js";
import type { TaskFate } from "../postgres/inspect.js";
import { settle, type Settlement } from "../postgres/settle.js";
import { step, type ClaimedTask } from "../postgres/step.js";
import type { ContextServices } from "../worker/context.js";
import { Executions } from "../worker/executions.js";
import { tellFailures, tellLost, type Outcome } from "../worker/failure.js";
import type { Hooks } from "../worker/hooks.js";
import { Outbox } from "../worker/outbox.js";
import { Reports } from "../worker/reports.js";
import type { AnyHandler, Execution } from "../worker/execution.js";
import { Session } from "../worker/session.js";
import { newToken } from "../worker/token.js";
import { cut } from "./cut.js";
import type { FaultKind } from "./faults.js";
import { Play } from "./play.js";

interface HandOptions {
  readonly connection: Connection;
  readonly handlers: ReadonlyMap<number, AnyHandler>;
  /** Creates the services behind ctx. `onRecorded` is called when a transaction has completed an execution. */
  readonly servicesOf: (onRecorded: (execution: Execution) => void) => ContextServices;
  readonly clock: Clock;
  readonly log: Logger;
  readonly resultBytesMax: number;
  readonly keepHistory: boolean;
  readonly hooks: Hooks;
  readonly fates: (ids: readonly string[]) => Promise<readonly TaskFate[]>;
}

/** The settlement that was sent to the database for an execution: a success, another outcome, or nothing. */
export interface Sent {
  readonly kind: "success" | Settlement["kind"] | "none";
  /** The execution was no longer ours to record. */
  readonly refused: boolean;
  /** JSON text of the error or reason, '' for none. */
  readonly outcome: string;
}

const NAME = "drain";
const LEASE_MS = 15_000;

/**
 * A worker that claims one task at a time and does nothing by itself: no poll, no timer, and no heartbeat unless
 * requested. It consists of the real worker's parts: its executions, its outbox, its sessions, and the statements that
 * claim and settle.
 */
export class Hand {
  readonly #o: HandOptions;
  readonly #executions: Executions;
  readonly #outbox = new Outbox();
  readonly #reports: Reports;
  readonly #streams: readonly number[];
  #session: Session | null = null;
  #play: Play | null = null;

  constructor(options: HandOptions) {
    this.#o = options;
    this.#streams = [...options.handlers.keys()];
    const { clock, log, resultBytesMax, hooks, handlers, fates } = options;
    // A drain runs one task at a time, so it finds no limit full.
    const limitNames = async (): Promise<Map<number, string>> => new Map();
    const { events, middleware } = hooks;
    this.#reports = new Reports({ events, worker: NAME, handlers, clock, log, fates, limitNames });
    const tell = (): void => this.#play?.tell();
    this.#executions = new Executions({
      handlers: new Map([...options.handlers].map(([stream, h]) => [stream, this.#watched(h)])),
      outbox: this.#outbox,
      services: options.servicesOf((execution) => {
        if (this.#play?.fault === "cut-completion") throw cut();
        this.#executions.recorded(execution);
      }),
      clock,
      log,
      resultBytesMax,
      middleware,
      reports: this.#reports,
      onOutcome: tell,
      onRecorded: tell,
    });
  }

  get worker(): string | null {
    return this.#session?.id ?? null;
  }

  /** Registers a worker, as a new process would. */
  async begin(): Promise<void> {
    const registration = {
      name: NAME,
      streams: this.#streams,
      leaseMs: LEASE_MS,
      capacity: 1,
      connections: 1,
    };
    const { id } = await register(this.#o.connection, registration);
    this.#session = new Session(id, Number.POSITIVE_INFINITY);
  }

  /** Unregisters the worker; tasks it still holds are released without using up an attempt. */
  async leave(): Promise<void> {
    const session = this.#session;
    if (session === null) return;
    this.#session = null;
    this.#executions.drop(session, new SluiceError("stopped", "the drain has ended"));
    this.#outbox.forget(session);
    await unregister(this.#o.connection, session.id);
  }

  /** Claims the next task by priority, then age, among those that order and limits let through. */
  async claim(): Promise<ClaimedTask | null> {
    const { claimed } = await step(this.#o.connection, this.#call(1));
    return claimed[0] ?? null;
  }

  /** Claims a suspect, if a heartbeat offers one: a task that was executing at three crashes and must run alone. */
  async claimSuspect(): Promise<ClaimedTask | null> {
    const { connection } = this.#o;
    const worker = this.#session!.id;
    const { suspect } = await this.beat();
    return suspect === null ? null : claimSuspect(connection, { worker, token: newToken(), id: suspect });
  }

  /** Sends a heartbeat, and applies the cancels in its reply. */
  async beat(): Promise<{ suspect: string | null }> {
    const session = this.#session;
    if (session === null) return { suspect: null };
    const busy = session.executions.size;
    const said = { availableCapacity: 1 - busy, memoryUsage: 0, draining: false };
    const { stops, suspect } = await beat(this.#o.connection, session.id, said);
    for (const { id, reason } of stops) this.#executions.cancel(session, id, reason);
    return { suspect };
  }

  /** Applies the new time: aborts handlers that have timed out, and gives up those that ignore the abort. */
  sweep(): void {
    this.#executions.sweep();
  }

  /** Runs the handler. Resolves when there is nothing left to wait for. */
  async run(task: ClaimedTask, fault: FaultKind | null): Promise<Play> {
    const session = this.#session!;
    const play = (this.#play = new Play(fault));
    this.#executions.start(task, session);
    play.follow(session.executions.get(task.claim.id));
    await play.over;
    return play;
  }

  /** Sends the outcome of the execution; with `twice` it sends it again, as a worker does that got no reply. */
  async settle(twice: boolean): Promise<Sent> {
    const send = this.#parcel();
    if (send === null) return { kind: "none", refused: false, outcome: "" };
    try {
      const refused = await send.once();
      if (twice) await send.once();
      await tellFailures(this.#o.connection, send.others);
      await this.#reports.idle();
      return { kind: send.kind, refused: refused > 0, outcome: send.outcome };
    } catch (e) {
      if (!isSluiceError(e, "lease_lost")) throw e;
      tellLost(send.others);
      return { kind: send.kind, refused: true, outcome: send.outcome };
    }
  }

  /** Expires the lease: claimed tasks are reclaimed, and count as crashed. */
  async die(): Promise<void> {
    const { connection } = this.#o;
    await expire(connection, this.#session!.id);
    await reap(connection);
  }

  /** Registers a new worker in place of the dead one. */
  async replace(): Promise<void> {
    this.#executions.drop(this.#session!, lost());
    this.#outbox.forget(this.#session!);
    await this.begin();
  }

  /**
   * Handles a lost reply to a claim: a second session takes over, and the first releases the tasks it never received.
   */
  async doubt(): Promise<void> {
    const { id } = this.#session!;
    await this.begin();
    await releaseUnknown(this.#o.connection, id, []);
    await unregister(this.#o.connection, id);
  }

  #call(want: number) {
    const { keepHistory } = this.#o;
    const common = { worker: this.#session!.id, streams: this.#streams, keepHistory, from: 1 };
    return { ...common, token: steadyToken(), want, tells: false, spots: [], successes: [] };
  }

  #parcel(): { kind: Sent["kind"]; outcome: string; others: readonly Outcome[]; once: () => Promise<number> } | null {
    const { connection } = this.#o;
    const success = this.#outbox.takeSuccesses(1);
    if (success !== null) {
      const once = async (): Promise<number> => {
        const { refused } = await step(connection, { ...this.#call(0), successes: success.items });
        this.#reports.succeeded(success.items, refused);
        return refused;
      };
      return { kind: "success", outcome: "", others: [], once };
    }
    const other = this.#outbox.takeOthers(1);
    if (other === null) return null;
    const { kind, outcome } = other.items[0]!;
    const once = async (): Promise<number> => {
      const recorded = await settle(connection, other.session.id, other.items);
      this.#reports.settled(other.items, recorded);
      return other.items.length - recorded.length;
    };
    return { kind, outcome, others: other.items, once };
  }

  /** Wraps a handler to record when it begins and ends. */
  #watched(handler: AnyHandler): AnyHandler {
    const run = async (input: never, ctx: TaskContext): Promise<unknown> => {
      const play = this.#play!;
      play.enter();
      const work = attempt(() => handler.run(input, ctx));
      if (play.fault === "lose-lease") this.#executions.drop(this.#session!, lost());
      try {
        return await work;
      } catch (e) {
        play.error = e;
        throw e;
      } finally {
        play.end();
      }
    };
    // After a crash the process is dead, so the worker never gets the handler's result.
    const unheard = (input: never, ctx: TaskContext): Promise<unknown> => {
      const work = run(input, ctx);
      if (this.#play!.fault !== "crash") return work;
      work.catch(() => {});
      return new Promise(() => {});
    };
    return { contract: handler.contract, run: unheard };
  }
}

async function attempt(work: () => unknown): Promise<unknown> {
  return work();
}

function lost(): SluiceError {
  return new SluiceError("lease_lost", "the lease of the worker was lost; another worker runs this task");
}

/**
 * One token in four makes a claim visit the gates in another order. A drain avoids those tokens, so that its order is
 * always the same.
 */
function steadyToken(): string {
  for (;;) {
    const token = newToken();
    if (BigInt(token) % 4n !== 3n) return token;
  }
}
