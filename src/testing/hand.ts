import { isSluiceError, SluiceError } from "../core/error.js";
import type { Clock, Logger } from "../core/ports.js";
import type { TaskContext } from "../core/context.js";
import { beat, claimSuspect, register, releaseUnknown, retire } from "../postgres/heartbeat.js";
import { reap } from "../postgres/keep.js";
import type { Connection } from "../postgres/connection.js";
import { expire } from "../postgres/rehearse.js";
import { settle, type Settlement } from "../postgres/settle.js";
import { step, type ClaimedTask } from "../postgres/step.js";
import type { ContextServices } from "../worker/context.js";
import { Crew } from "../worker/crew.js";
import { Outbox } from "../worker/outbox.js";
import type { AnyHandler, Execution } from "../worker/execution.js";
import { Session } from "../worker/session.js";
import { newToken } from "../worker/token.js";
import { cut } from "./cut.js";
import type { FaultKind } from "./faults.js";
import { Play } from "./play.js";

interface HandOptions {
  readonly connection: Connection;
  readonly handlers: ReadonlyMap<number, AnyHandler>;
  /** What ctx can do, given what to call when a transaction has completed an execution. */
  readonly servicesOf: (onRecorded: (execution: Execution) => void) => ContextServices;
  readonly clock: Clock;
  readonly log: Logger;
  readonly resultBytesMax: number;
  readonly keepHistory: boolean;
}

/** What was sent to the database about an execution: a success, another outcome, or nothing at all. */
export interface Sent {
  readonly kind: "success" | Settlement["kind"] | "none";
  /** It was no longer ours to record. */
  readonly refused: boolean;
  /** JSON text of the error or reason, '' for none. */
  readonly outcome: string;
}

const LEASE_MS = 15_000;

/**
 * A worker that takes one task at a time and does nothing by itself: no poll, no timer, no heartbeat
 * that was not asked for. What it is made of is the worker's: its crew, its outbox, its sessions, and
 * the statements that claim and settle.
 */
export class Hand {
  readonly #o: HandOptions;
  readonly #crew: Crew;
  readonly #outbox = new Outbox();
  readonly #streams: readonly number[];
  #session: Session | null = null;
  #play: Play | null = null;

  constructor(options: HandOptions) {
    this.#o = options;
    this.#streams = [...options.handlers.keys()];
    const { clock, log, resultBytesMax } = options;
    const tell = (): void => this.#play?.tell();
    this.#crew = new Crew({
      handlers: new Map([...options.handlers].map(([stream, h]) => [stream, this.#watched(h)])),
      outbox: this.#outbox,
      services: options.servicesOf((execution) => {
        if (this.#play?.fault === "cut-completion") throw cut();
        this.#crew.recorded(execution);
      }),
      clock,
      log,
      resultBytesMax,
      onOutcome: tell,
      onRecorded: tell,
    });
  }

  get worker(): string | null {
    return this.#session?.id ?? null;
  }

  /** Registers, as a new process would. */
  async begin(): Promise<void> {
    const registration = {
      name: "drain",
      streams: this.#streams,
      leaseMs: LEASE_MS,
      capacity: 1,
      connections: 1,
    };
    const { id } = await register(this.#o.connection, registration);
    this.#session = new Session(id, Number.POSITIVE_INFINITY);
  }

  /** Signs off; what is still in hand goes back unharmed. */
  async leave(): Promise<void> {
    const session = this.#session;
    if (session === null) return;
    this.#session = null;
    this.#crew.drop(session, new SluiceError("stopped", "the drain has ended"));
    this.#outbox.forget(session);
    await retire(this.#o.connection, session.id);
  }

  /** The next task by priority, then age, of those that order and limits let through. */
  async claim(): Promise<ClaimedTask | null> {
    const { claimed } = await step(this.#o.connection, this.#call(1));
    return claimed[0] ?? null;
  }

  /** A task that was in hand at three crashes is offered with a heartbeat, to be run alone. */
  async claimSuspect(): Promise<ClaimedTask | null> {
    const { connection } = this.#o;
    const worker = this.#session!.id;
    const { suspect } = await this.beat();
    return suspect === null ? null : claimSuspect(connection, { worker, token: newToken(), id: suspect });
  }

  /** A heartbeat: brings cancels of what runs. */
  async beat(): Promise<{ suspect: string | null }> {
    const session = this.#session;
    if (session === null) return { suspect: null };
    const busy = session.executions.size;
    const said = { availableCapacity: 1 - busy, memoryUsage: 0, draining: false };
    const { stops, suspect } = await beat(this.#o.connection, session.id, said);
    for (const { id, reason } of stops) this.#crew.cancel(session, id, reason);
    return { suspect };
  }

  /** Time has moved: handlers whose time is over are told, those that do not hear are given up. */
  sweep(): void {
    this.#crew.sweep();
  }

  /** Runs the handler. Resolves when there is nothing left to wait for. */
  async run(task: ClaimedTask, fault: FaultKind | null): Promise<Play> {
    const session = this.#session!;
    const play = (this.#play = new Play(fault));
    this.#crew.start(task, session);
    play.follow(session.executions.get(task.claim.id));
    await play.over;
    return play;
  }

  /** Sends what came of the execution, and with `twice` once more, as a worker does that has heard no reply. */
  async settle(twice: boolean): Promise<Sent> {
    const send = this.#parcel();
    if (send === null) return { kind: "none", refused: false, outcome: "" };
    try {
      const refused = await send.once();
      if (twice) await send.once();
      return { kind: send.kind, refused: refused > 0, outcome: send.outcome };
    } catch (e) {
      if (!isSluiceError(e, "lease_lost")) throw e;
      return { kind: send.kind, refused: true, outcome: send.outcome };
    }
  }

  /** The lease runs out: whatever was in hand is taken back, as a crash. */
  async die(): Promise<void> {
    const { connection } = this.#o;
    await expire(connection, this.#session!.id);
    await reap(connection);
  }

  /** Another process goes on. */
  async replace(): Promise<void> {
    this.#crew.drop(this.#session!, lost());
    this.#outbox.forget(this.#session!);
    await this.begin();
  }

  /** The reply to the claim was lost: a second session goes on, the first hands back what it never saw. */
  async doubt(): Promise<void> {
    const { id } = this.#session!;
    await this.begin();
    await releaseUnknown(this.#o.connection, id, []);
    await retire(this.#o.connection, id);
  }

  #call(want: number) {
    const { keepHistory } = this.#o;
    const common = { worker: this.#session!.id, streams: this.#streams, keepHistory, from: 1 };
    return { ...common, token: steadyToken(), want, tells: false, spots: [], successes: [] };
  }

  #parcel(): { kind: Sent["kind"]; outcome: string; once: () => Promise<number> } | null {
    const { connection } = this.#o;
    const success = this.#outbox.takeSuccesses(1);
    if (success !== null) {
      const once = async (): Promise<number> =>
        (await step(connection, { ...this.#call(0), successes: success.items })).refused;
      return { kind: "success", outcome: "", once };
    }
    const other = this.#outbox.takeOthers(1);
    if (other === null) return null;
    const { kind, outcome } = other.items[0]!;
    return { kind, outcome, once: () => settle(connection, other.session.id, other.items) };
  }

  /** The handler, with an eye on when it begins and ends. */
  #watched(handler: AnyHandler): AnyHandler {
    const run = async (input: never, ctx: TaskContext): Promise<unknown> => {
      const play = this.#play!;
      play.enter();
      const work = attempt(() => handler.run(input, ctx));
      if (play.fault === "lose-lease") this.#crew.drop(this.#session!, lost());
      try {
        return await work;
      } catch (e) {
        play.error = e;
        throw e;
      } finally {
        play.end();
      }
    };
    // Of a process that is dead nobody hears how its handler ended.
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
  return new SluiceError("lease_lost", "the worker's lease was lost; this task runs elsewhere");
}

/** By one token in four a claim looks at the gates in another order; a drain always looks in the same. */
function steadyToken(): string {
  for (;;) {
    const token = newToken();
    if (BigInt(token) % 4n !== 3n) return token;
  }
}
