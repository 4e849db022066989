import type pg from "pg";
import type { ConnectionShares } from "../config/connections.js";
import type { Values } from "../config/table.js";
import { reportProgress } from "../postgres/progress.js";
import { SluiceError } from "../core/error.js";
import type { Clock } from "../core/ports.js";
import { within } from "../core/within.js";
import { Keeper } from "../keeper/keeper.js";
import { Placer } from "../runs/placer.js";
import { backend, endBackend } from "../postgres/backend.js";
import { Connection } from "../postgres/connection.js";
import { taskFates } from "../postgres/inspect.js";
import { DISCONNECTED, LISTENING, NOTIFICATION } from "../postgres/listen.js";
import { endPool } from "../postgres/part.js";
import type { Settlement } from "../postgres/settle.js";
import { readLimitNames } from "../postgres/slots.js";
import { onWait } from "../postgres/waits.js";
import { Claimer } from "./claim.js";
import { Executions } from "./executions.js";
import type { ContextServices } from "./context.js";
import { ProgressReporter } from "./progress.js";
import { contextServices } from "./context-services.js";
import { Heartbeat } from "./heartbeat.js";
import type { Probe } from "./held.js";
import { noMeter, type Meter } from "./metrics/meter.js";
import { OnCall } from "./on-call.js";
import type { Outbox } from "./outbox.js";
import { Payloads } from "./payloads.js";
import type { Permits } from "./permits.js";
import { heardBy } from "./pressure/hear.js";
import { payloadBytesFor } from "./pressure/memory.js";
import { resolvePressure, type PressureThresholds } from "./pressure/options.js";
import { Pressure } from "./pressure/pressure.js";
import { Reports } from "./reports.js";
import { checkRoom, checkTimeout, mayOpen } from "./room.js";
import type { AnyHandler } from "./execution.js";
import type { Session } from "./session.js";
import { Sweeper } from "./sweeper.js";
import { Suspects } from "./suspect.js";
import type { WorkerServices } from "./worker-services.js";

interface AssembleOptions {
  readonly services: WorkerServices;
  readonly numbers: Values<"worker">;
  readonly shares: ConnectionShares;
  readonly name: string;
  readonly permits: Permits;
  readonly outbox: Outbox;
  readonly clock: Clock;
  readonly meter?: Meter;
  readonly thresholds?: PressureThresholds;
  /** Whether the worker is neither starting nor stopping. */
  readonly running: () => boolean;
}

/** The parts of a running worker. */
export interface Parts {
  readonly executions: Executions;
  readonly heartbeat: Heartbeat;
  readonly claimer: Claimer;
  readonly keeper: Keeper;
  readonly pressure: Pressure;
  readonly suspects: Suspects;
  /** Connections for handler transactions. */
  readonly pool: pg.Pool;
  /**
   * Throws if the server has no room for the worker's connections; warns about conditions that may hinder the worker.
   */
  checkRoom(): Promise<void>;
  close(): Promise<void>;
}

// Outcomes after which a task comes back later.
const PUT_OFF: ReadonlySet<Settlement["kind"]> = new Set(["retry", "snooze", "invalid"]);
// The keeper works in bounded steps. If it waited longer for a reply, a half-open connection would delay the recovery
// of tasks that dead workers held.
const KEEP_REPLY_MS_MAX = 5_000;
// How long a stopped worker waits until its last outcomes are reported to listeners.
const REPORT_MS_MAX = 2_000;

/** Creates the parts of a worker and connects them. Claims nothing until the parts are started. */
export function assemble(handlers: ReadonlyMap<number, AnyHandler>, options: AssembleOptions): Parts {
  return new Assembly(handlers, options);
}

/** The connections of a worker, by purpose. */
interface Connections {
  readonly claims: readonly Connection[];
  readonly beat: Connection;
  readonly keep: Connection;
}

/** The parts refer to each other. No part calls another until all of them exist. */
class Assembly implements Parts {
  readonly #o: AssembleOptions;
  readonly #handlers: ReadonlyMap<number, AnyHandler>;
  readonly #meter: Meter;
  readonly #thresholds: PressureThresholds;
  readonly #replyMsMax: number;
  readonly #connections: Connections;
  readonly #onCall: OnCall;
  readonly #placer: Placer;
  readonly #sweeper: Sweeper;
  readonly #progress: ProgressReporter;
  readonly #reports: Reports;
  readonly #stopListening: (() => void) | undefined;
  /** Releases the notifications that a leading keeper needs. */
  #stopLeading: (() => void) | null = null;
  readonly pool: pg.Pool;
  readonly pressure: Pressure;
  readonly executions: Executions;
  readonly suspects: Suspects;
  readonly heartbeat: Heartbeat;
  readonly claimer: Claimer;
  readonly keeper: Keeper;

  constructor(handlers: ReadonlyMap<number, AnyHandler>, options: AssembleOptions) {
    this.#o = options;
    this.#handlers = handlers;
    const { services, shares, numbers, meter = noMeter, thresholds = resolvePressure() } = options;
    this.#meter = meter;
    this.#thresholds = thresholds;
    this.#replyMsMax = Math.max(1_000, Math.min(10_000, numbers.leaseMs * 0.8));
    this.#connections = {
      claims: Array.from({ length: shares.claims }, () => new Connection(services.db, this.#replyMsMax)),
      beat: new Connection(services.db, Math.max(500, numbers.leaseMs * 0.4)),
      keep: new Connection(services.db, KEEP_REPLY_MS_MAX),
    };
    this.pool = services.db.pool(shares.handlers);
    if (meter !== noMeter) onWait(this.pool, (ms) => meter.waited("handlers", ms));
    this.#progress = this.#makeProgress();
    this.#reports = this.#makeReports();
    this.#onCall = this.#makeOnCall();
    this.pressure = this.#makePressure();
    this.executions = this.#makeExecutions();
    this.suspects = this.#makeSuspects();
    this.heartbeat = this.#makeHeartbeat();
    this.claimer = this.#makeClaimer();
    this.#placer = this.#makePlacer();
    this.keeper = this.#makeKeeper();
    this.#sweeper = new Sweeper({ sweep: () => this.executions.sweep(), idle: this.#idle });
    this.#stopListening = services.listener?.on((payload) => this.#notified(payload));
  }

  async checkRoom(): Promise<void> {
    const { services, shares } = this.#o;
    await checkRoom(this.#connections.keep, services, shares);
    await checkTimeout(this.#connections.keep, services);
  }

  async close(): Promise<void> {
    this.#sweeper.stop();
    this.pressure.stop();
    this.#stopListening?.();
    this.#onCall.stop();
    this.#stopLeading?.();
    this.#placer.stop();
    this.#progress.stop();
    await within(this.#reports.idle(), REPORT_MS_MAX);
    const { claims, beat, keep } = this.#connections;
    await Promise.all([...claims, beat, keep].map((connection) => connection.close()));
    await endPool(this.pool);
  }

  /** Whether no task is claimed or executing. */
  readonly #idle = (): boolean => this.#o.permits.inUse === 0 && this.executions.size === 0 && !this.suspects.busy;

  /** A task is claimed, or is about to be. */
  #speedUp(): void {
    this.heartbeat.speedUp();
    this.pressure.speedUp();
    this.#sweeper.speedUp();
  }

  /** Handles a notification. postgres/listen.ts has a table of the payloads. */
  #notified(payload: string): void {
    const [word, id = "", tasks] = payload.split(":");
    if (word === LISTENING || word === DISCONNECTED) {
      this.claimer.poll.changed();
      this.keeper.look();
    }
    if (word === LISTENING) {
      this.claimer.wake();
      this.heartbeat.beatSoon(null);
    } else if (word === NOTIFICATION.stop) this.heartbeat.beatSoon(id);
    else if (word === NOTIFICATION.keep) this.keeper.notified(id);
    else if (word === NOTIFICATION.wake && id === this.heartbeat.current?.id) this.claimer.ring(Number(tasks));
  }

  #lose(session: Session): void {
    const { permits, outbox } = this.#o;
    const reason = new SluiceError("lease_lost", "the lease of the worker was lost; another worker runs this task");
    const dropped = this.executions.drop(session, reason);
    // guard: what waits to be recorded is lost with its lease -> test/worker/properties.test.ts: "an execution aborted for a lost lease records nothing, and is aborted before its lease runs out"
    permits.give(dropped /* guard:waiting */ + outbox.forget(session) /* end */);
  }

  #makeReports(): Reports {
    const { services, name: worker, clock } = this.#o;
    const { db, log, hooks } = services;
    return new Reports({
      events: hooks.events,
      worker,
      handlers: this.#handlers,
      clock,
      log,
      fates: (ids) => taskFates(db, ids),
      limitNames: (limits) => readLimitNames(db, limits),
    });
  }

  #makeOnCall(): OnCall {
    const { listener, log } = this.#o.services;
    return new OnCall({ connection: this.#connections.beat, listener, current: () => this.heartbeat.current, log });
  }

  #makePressure(): Pressure {
    const { services, clock } = this.#o;
    return new Pressure({
      thresholds: this.#thresholds,
      clock,
      log: services.log,
      stops: () => this.claimer.stops,
      idle: this.#idle,
      onRelief: () => this.claimer.wake(),
    });
  }

  #makeExecutions(): Executions {
    const { services, outbox, clock, permits } = this.#o;
    const { log, resultBytesMax } = services;
    return new Executions({
      handlers: this.#handlers,
      outbox,
      services: this.#contextServices(),
      clock,
      log,
      resultBytesMax,
      meter: heardBy(this.pressure, this.#meter),
      middleware: services.hooks.middleware,
      reports: this.#reports,
      onOutcome: () => this.claimer.schedule(),
      onRecorded: () => {
        permits.give(1);
        this.claimer.wake();
      },
    });
  }

  #makeProgress(): ProgressReporter {
    const { services, clock } = this.#o;
    return new ProgressReporter({ clock, log: services.log, send: (reports) => reportProgress(services.db, reports) });
  }

  #contextServices(): ContextServices {
    const { services, outbox, clock } = this.#o;
    const { listener, resultBytesMax, logger, log } = services;
    const { keep: connection } = this.#connections;
    const probe: Probe = {
      look: (pid) => backend(connection, pid),
      end: (transaction) => endBackend(connection, transaction),
    };
    return contextServices({
      services,
      lending: { pool: this.pool, replyMsMax: this.#replyMsMax, probe },
      listener,
      keepHistory: this.#keepsHistory,
      resultBytesMax,
      logger,
      log,
      clock,
      progress: this.#progress,
      onRecorded: (execution) => this.executions.recorded(execution),
      onUnconfirmed: () => outbox.commitDoubted(),
    });
  }

  get #keepsHistory(): boolean {
    return this.#o.services.history.succeededMs > 0;
  }

  #makeSuspects(): Suspects {
    const { numbers, permits, clock, services, running } = this.#o;
    const { leaseMs } = numbers;
    return new Suspects({ leaseMs, permits, clock, log: services.log, meter: this.#meter, running, parts: () => this });
  }

  #makeHeartbeat(): Heartbeat {
    const { services, numbers, shares, name, permits, outbox, clock } = this.#o;
    return new Heartbeat({
      connection: this.#connections.beat,
      registration: {
        name,
        streams: [...this.#handlers.keys()],
        leaseMs: numbers.leaseMs,
        capacity: permits.max,
        connections: mayOpen(services, shares),
        listens: services.listener !== null,
      },
      free: () => (this.suspects.busy ? 0 : this.claimer.room),
      idle: this.#idle,
      pressure: () => this.pressure.state,
      clock,
      log: services.log,
      // guard: an outcome that waits is not unknown -> test/worker/properties.test.ts: "tasks of a lost claim reply are released, and do not count as a crash"
      known: (session) => /* guard:known */ [...session.tokens(), ...outbox.tokens(session)] /* end */,
      onBegan: () => this.claimer.sessionBegan(),
      hasReserve: () => this.#onCall.hasReserve,
      inReserve: () => this.#onCall.inReserve,
      onDuty: (duty) => {
        this.#onCall.told(duty);
        this.claimer.poll.changed();
      },
      onLost: (session) => this.#lose(session),
      onStop: (session, id, reason) => this.executions.cancel(session, id, reason),
      onRoom: () => this.claimer.wake(),
      onSuspect: (session, id) => {
        void this.suspects.run(session, id);
        this.#speedUp();
      },
    });
  }

  #makeClaimer(): Claimer {
    const { services, numbers, permits, outbox, clock } = this.#o;
    const bytesMax = numbers.payloadBytesInFlightMax;
    // Without a bound on memory, the setting alone decides.
    const bounded = this.#thresholds.memoryPercentMax !== null;
    return new Claimer({
      connections: this.#connections.claims,
      streams: [...this.#handlers.keys()],
      permits,
      payloads: new Payloads(bounded ? payloadBytesFor(bytesMax) : bytesMax),
      outbox,
      executions: this.executions,
      claimBatchSize: numbers.claimBatchSize,
      pressed: () => this.pressure.pressed,
      pollIntervalMs: numbers.pollIntervalMs,
      keepHistory: this.#keepsHistory,
      bell: services.listener !== null,
      listening: () => this.#onCall.listening,
      pollMsMax: () => this.#onCall.pollMsMax,
      onIdlePoll: () => this.#onCall.idlePoll(),
      clock,
      log: services.log,
      meter: this.#meter,
      current: () => this.heartbeat.current,
      holds: (session) => this.heartbeat.holds(session),
      onDoubt: (session) => this.heartbeat.doubt(session),
      onLost: (session) => this.heartbeat.lose(session),
      onBusy: () => {
        this.keeper.active();
        this.#speedUp();
      },
      onSettled: (items, recorded) => {
        for (const { kind, delayMs } of items) if (PUT_OFF.has(kind)) this.keeper.expect(delayMs);
        this.#reports.settled(items, recorded);
      },
      reports: this.#reports,
      onUnplaced: () => this.#placer.look(),
    });
  }

  #makePlacer(): Placer {
    const { services, clock } = this.#o;
    return new Placer({
      db: services.db,
      declarations: services.declarations,
      pool: this.pool,
      terms: new Map([...this.#handlers].map(([stream, { contract }]) => [stream, contract])),
      worker: () => this.heartbeat.current?.id ?? null,
      log: services.log,
      clock,
      onMoved: () => this.claimer.wake(),
    });
  }

  #makeKeeper(): Keeper {
    const { services, numbers, clock } = this.#o;
    const { listener, history, log } = services;
    return new Keeper({
      connection: this.#connections.keep,
      log,
      clock,
      pollIntervalMs: numbers.pollIntervalMs,
      listening: () => (this.#stopLeading === null ? listener?.connected : listener?.listens) === true,
      // A keeper needs notifications only while it leads.
      onLead: (leads) => {
        this.#stopLeading?.();
        this.#stopLeading = leads ? (listener?.need({ lingers: false }) ?? null) : null;
      },
      history,
      onMoved: () => this.claimer.wake(),
      onUnplaced: () => this.#placer.glance(),
    });
  }
}
