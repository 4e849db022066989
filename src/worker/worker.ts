import { hostname } from "node:os";
import type { Declarations } from "../client/declarations.js";
import type { Desk } from "../client/enqueue.js";
import { resolveWorkerOptions, type WorkerNumbers } from "../core/config.js";
import { SluiceError } from "../core/error.js";
import { checkName } from "../core/name.js";
import { checkInteger } from "../core/number.js";
import { checkOptions } from "../core/option.js";
import type { TaskHandler } from "../core/task.js";
import { monotonicClock, type Clock, type Logger } from "../core/ports.js";
import { Keeper, type History } from "../keeper/keeper.js";
import type { Database } from "../postgres/database.js";
import { isReplyLost } from "../postgres/fault.js";
import { Line } from "../postgres/line.js";
import { endPool } from "../postgres/part.js";
import type { Listener } from "../postgres/listen.js";
import { Claimer } from "./claim.js";
import { Crew } from "./crew.js";
import { contextDesk } from "./desk.js";
import { Heart } from "./heartbeat.js";
import { Outbox } from "./outbox.js";
import { Payloads } from "./payloads.js";
import { Permits } from "./permits.js";
import type { AnyHandler } from "./run.js";
import type { Session } from "./session.js";

/** What a worker is made of; numbers not given come from the environment, then from the defaults. */
export interface WorkerOptions extends WorkerNumbers {
  /** One for each type it serves: `contract.handle(fn)`. */
  // oxlint-disable-next-line typescript/no-explicit-any -- of any input and output, which only `any` can say
  readonly handlers: readonly TaskHandler<any, any, any>[];
  /** For people; default: host and process id. */
  readonly name?: string;
}

/** What a worker needs from the Sluice it belongs to. */
interface WorkerDesk extends Desk {
  readonly db: Database;
  readonly declarations: Declarations;
  readonly listener: Listener | null;
  readonly logger: Logger;
  /** At most a line a second about the same trouble. */
  readonly log: Logger;
  readonly history: History;
  readonly resultBytesMax: number;
  /** It has stopped, or could not start. */
  readonly onStopped: () => void;
}

/** A worker's state at a moment. */
export interface WorkerStatus {
  readonly id: string | null;
  readonly inFlight: number;
  readonly permitsInUse: number;
  readonly permitsMax: number;
  readonly completed: number;
  readonly failed: number;
  readonly claims: number;
  readonly acquired: number;
  /** Outcomes that came too late. */
  readonly refused: number;
  /** Handlers that ignored their signal and still run. */
  readonly abandoned: number;
}

const OPTIONS = [
  "handlers",
  "name",
  "maxConcurrentTasks",
  "claimBatchSize",
  "pollIntervalMs",
  "claimLoops",
  "dbConnections",
  "payloadBytesInFlightMax",
  "leaseMs",
];
// While one statement of a loop is being answered, Node prepares the other.
const LINES_PER_LOOP = 2;
const OTHER_LINES = 2;
const SWEEP_MS = 50;
// What the keeper asks for is done in bounded steps. If it waited longer, a half-open connection
// would hold up the recovery of what dead workers held.
const KEEP_REPLY_MS_MAX = 5_000;
const FLUSH_MS_MAX = 5_000;
// A worker that does not get empty in this time leaves the suspect to others, for so long.
const EMPTYING_LEASES = 2;
const NO_SUSPECTS_LEASES = 10;
const GRACE_RANGE = { min: 0, max: 24 * 3_600_000 };

/** Claims tasks, runs their handlers and records what came of them. */
export class Worker {
  readonly #desk: WorkerDesk;
  readonly #handlers: readonly AnyHandler[];
  readonly #numbers: ReturnType<typeof resolveWorkerOptions>["values"];
  readonly #name: string;
  readonly #log: Logger;
  readonly #clock: Clock = monotonicClock;
  readonly #permits: Permits;
  readonly #outbox = new Outbox();
  #parts: Parts | null = null;
  #state: "new" | "running" | "stopping" | "stopped" = "new";
  #starting: Promise<void> | null = null;
  #stopping: Promise<void> | null = null;

  constructor(desk: WorkerDesk, options: WorkerOptions) {
    checkOptions("worker", options, OPTIONS);
    this.#desk = desk;
    this.#handlers = checkHandlers(options.handlers);
    this.#numbers = resolveWorkerOptions(options, process.env).values;
    this.#name = checkName("worker", options.name ?? `${hostname().slice(0, 80)}:${process.pid}`);
    this.#log = desk.log;
    this.#permits = new Permits(this.#numbers.maxConcurrentTasks);
    const linesMin = this.#numbers.claimLoops * LINES_PER_LOOP + OTHER_LINES + 1;
    if (this.#numbers.dbConnections < linesMin) {
      throw new SluiceError(
        "invalid_option",
        `dbConnections must be at least ${linesMin}: ${LINES_PER_LOOP} per claim loop, one to beat, one to keep, one for transactions of handlers`,
      );
    }
  }

  /** Registers and begins to claim. Throws if the database cannot be reached. */
  async start(): Promise<void> {
    if (this.#state === "running")
      throw new SluiceError("invalid_option", "this worker was started already");
    if (this.#state !== "new")
      throw new SluiceError("stopped", `this worker is ${this.#state}: make a new one`);
    this.#state = "running";
    this.#starting = this.#start();
    return this.#starting;
  }

  async #start(): Promise<void> {
    const streams = new Map<number, AnyHandler>();
    try {
      for (const h of this.#handlers)
        streams.set(await this.#desk.declarations.stream(h.contract), h);
      this.#parts = this.#assemble(streams);
      await this.#parts.heart.start();
    } catch (e) {
      this.#state = "stopped";
      await this.#parts?.close();
      this.#desk.onStopped();
      throw e;
    }
    this.#parts.keeper.start();
    this.#parts.claimer.start();
  }

  /**
   * Stops claiming, lets handlers finish for the grace time, hands the rest back without using up an
   * attempt, and signs off. Calling it again waits for the first call.
   */
  stop(options: { readonly graceMs?: number } = {}): Promise<void> {
    checkOptions("stop", options, ["graceMs"]);
    const graceMs = checkInteger("graceMs", options.graceMs ?? 20_000, GRACE_RANGE);
    this.#stopping ??= this.#stop(graceMs);
    return this.#stopping;
  }

  status(): WorkerStatus {
    const { claimer, crew, heart } = this.#parts ?? {};
    return {
      id: heart?.current?.id ?? null,
      inFlight: crew?.size ?? 0,
      permitsInUse: this.#permits.inUse,
      permitsMax: this.#permits.max,
      completed: crew?.completed ?? 0,
      failed: crew?.failed ?? 0,
      claims: claimer?.claims ?? 0,
      acquired: claimer?.acquired ?? 0,
      refused: claimer?.refused ?? 0,
      abandoned: crew?.abandoned ?? 0,
    };
  }

  async #stop(graceMs: number): Promise<void> {
    // Half a start cannot be undone: it comes to its end first, one way or the other.
    await this.#starting?.catch(() => {});
    const parts = this.#parts;
    const wasRunning = this.#state === "running" && parts !== null;
    this.#state = "stopping";
    if (wasRunning) {
      parts.claimer.pause();
      parts.heart.drain();
      parts.claimer.pump();
      await within(parts.claimer.settled(), graceMs);
      const handedBack = parts.crew.size;
      parts.crew.release(new SluiceError("stopped", "the worker is shutting down"));
      parts.claimer.pump();
      // guard: stop() waits until what it hands back is recorded -> test/worker/properties.test.ts: "where the store can be reached, it hands back everything and every permit"
      await within(parts.claimer.settled(), FLUSH_MS_MAX);
      parts.keeper.stop();
      parts.claimer.stop();
      await within(parts.heart.stop(), FLUSH_MS_MAX);
      this.#desk.logger.info("the worker has stopped", { name: this.#name, handedBack });
    }
    await parts?.close();
    this.#state = "stopped";
    this.#desk.onStopped();
  }

  #assemble(handlers: ReadonlyMap<number, AnyHandler>): Parts {
    const { db, listener, history, resultBytesMax } = this.#desk;
    const { claimLoops, claimBatchSize, pollIntervalMs, dbConnections, leaseMs } = this.#numbers;
    const payloads = new Payloads(this.#numbers.payloadBytesInFlightMax);
    const replyMsMax = Math.max(1_000, Math.min(10_000, leaseMs * 0.8));
    const lines = Array.from(
      { length: claimLoops * LINES_PER_LOOP },
      () => new Line(db, replyMsMax),
    );
    const [beatLine, keepLine] = [
      new Line(db, Math.max(500, leaseMs * 0.4)),
      new Line(db, KEEP_REPLY_MS_MAX),
    ];
    const pool = db.pool(dbConnections - lines.length - OTHER_LINES);
    const keep = history.succeededMs > 0;
    const streams = [...handlers.keys()];

    const crew: Crew = new Crew({
      handlers,
      outbox: this.#outbox,
      desk: contextDesk({
        desk: this.#desk,
        pool,
        keep,
        resultBytesMax: this.#desk.resultBytesMax,
        logger: this.#desk.logger,
        log: this.#log,
        clock: this.#clock,
        onRecorded: (run) => crew.recorded(run),
      }),
      clock: this.#clock,
      log: this.#log,
      resultBytesMax,
      onOutcome: () => claimer.schedule(),
      onRecorded: () => {
        this.#permits.give(1);
        claimer.wake();
      },
    });
    const lose = (session: Session): void => {
      const dropped = crew.drop(
        session,
        new SluiceError("lease_lost", "the worker's lease was lost; this task runs elsewhere"),
      );
      // guard: what waits to be recorded is lost with its lease -> test/worker/properties.test.ts: "a run aborted for a lost lease records nothing, and is aborted before its lease runs out"
      this.#permits.give(dropped + this.#outbox.forget(session));
    };
    const heart: Heart = new Heart({
      line: beatLine,
      registration: { name: this.#name, streams, leaseMs, capacity: this.#permits.max },
      free: () => (this.#suspecting ? 0 : claimer.room),
      clock: this.#clock,
      log: this.#log,
      // guard: an outcome that waits is not unknown -> test/worker/properties.test.ts: "a lost claim reply is handed back and is no crash"
      known: (session) => [...session.tokens(), ...this.#outbox.tokens(session)],
      onBegan: () => claimer.sessionBegan(),
      onLost: lose,
      onStop: (session, id, reason) => crew.cancel(session, id, reason),
      onSuspect: (session, id) => void this.#runSuspect(session, id),
    });
    const claimer: Claimer = new Claimer({
      lines,
      streams,
      permits: this.#permits,
      payloads,
      outbox: this.#outbox,
      crew,
      batchMax: claimBatchSize,
      pollIntervalMs,
      keep,
      bell: listener !== null,
      clock: this.#clock,
      log: this.#log,
      current: () => heart.current,
      onDoubt: (session) => heart.doubt(session),
      onLost: (session) => heart.lose(session),
    });
    const keeper = new Keeper({
      line: keepLine,
      log: this.#log,
      clock: this.#clock,
      dueIntervalMs: pollIntervalMs,
      reapIntervalMs: Math.max(50, Math.min(500, leaseMs / 10)),
      history,
      onMoved: () => claimer.wake(),
    });
    const sweep = setInterval(() => crew.sweep(), SWEEP_MS);
    const hush = listener?.on((payload) => {
      const [word, worker, tasks] = payload.split(":");
      if (word === "again") claimer.wake();
      else if (word === "wake" && worker === heart.current?.id) claimer.ring(Number(tasks));
    });
    const close = async (): Promise<void> => {
      clearInterval(sweep);
      hush?.();
      await Promise.all([...lines, beatLine, keepLine].map((line) => line.close()));
      await endPool(pool);
    };
    return { crew, heart, claimer, keeper, close };
  }

  /** Empties the worker, then runs the suspect with nothing beside it. */
  async #runSuspect(session: Session, id: string): Promise<void> {
    const parts = this.#parts;
    if (parts === null || this.#state !== "running" || this.#suspecting) return;
    if (this.#clock.now() < this.#noSuspectsUntilMs) return parts.heart.releaseSuspect(session);
    // guard: nothing is claimed beside a suspect -> test/worker/properties.test.ts: "a suspect runs alone, and others go on after it"
    this.#suspecting = true;
    parts.claimer.pause();
    try {
      const { leaseMs } = this.#numbers;
      if (!(await within(parts.claimer.settled(), EMPTYING_LEASES * leaseMs))) {
        this.#noSuspectsUntilMs = this.#clock.now() + NO_SUSPECTS_LEASES * leaseMs;
        return await parts.heart.releaseSuspect(session);
      }
      if (session.lost || session.doubtful || this.#state !== "running") return;
      this.#permits.take(1);
      const task = await parts.heart.claimSuspect(session, id).catch((e: unknown) => {
        // We may hold it without knowing: as with any claim, this session ends then.
        if (isReplyLost(e)) parts.heart.doubt(session);
        return null;
      });
      if (task === null || session.lost) return this.#permits.give(1);
      this.#log.warn("running a task alone: it was in hand at three crashes", { task: id });
      parts.crew.start(task, session);
      await parts.claimer.settled();
    } finally {
      this.#suspecting = false;
      if (this.#state === "running") parts.claimer.resume();
    }
  }
  #suspecting = false;
  #noSuspectsUntilMs = Number.NEGATIVE_INFINITY;
}

interface Parts {
  readonly crew: Crew;
  readonly heart: Heart;
  readonly claimer: Claimer;
  readonly keeper: Keeper;
  close(): Promise<void>;
}

function checkHandlers(handlers: unknown): readonly AnyHandler[] {
  if (!Array.isArray(handlers) || handlers.length === 0) {
    throw new SluiceError("invalid_option", "a worker needs at least one handler");
  }
  const seen = new Set<string>();
  for (const h of handlers as Partial<AnyHandler>[]) {
    if (typeof h?.run !== "function" || h.contract === undefined) {
      throw new SluiceError("invalid_option", "handlers are made by task(...).handle(fn)");
    }
    const of = `${h.contract.queue}\u001f${h.contract.type}`;
    if (seen.has(of))
      throw new SluiceError("invalid_option", `two handlers for task ${h.contract.type}`);
    seen.add(of);
  }
  return handlers as AnyHandler[];
}

/** Waits for work, but not longer than ms. Whether it came to its end. */
async function within(work: Promise<unknown>, ms: number): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<false>((resolve) => (timer = setTimeout(() => resolve(false), ms)));
  const done = work.then(
    () => true,
    () => true,
  );
  const inTime = await Promise.race([done, late]);
  clearTimeout(timer);
  return inTime;
}
