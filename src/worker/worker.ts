import { hostname } from "node:os";
import { connectionsOf, type ConnectionShares } from "../config/connections.js";
import type { PresetName } from "../config/presets.js";
import { resolvePreset, resolveSection } from "../config/resolve.js";
import { namesOf, type Some, type Values } from "../config/table.js";
import { SluiceError } from "../core/error.js";
import { checkName } from "../core/name.js";
import { checkInteger } from "../core/number.js";
import { checkOptions } from "../core/option.js";
import { monotonicClock, type Clock } from "../core/ports.js";
import { pressureOf, type PressureState } from "../core/pressure.js";
import type { TaskHandler } from "../core/task.js";
import { within } from "../core/within.js";
import { checkMetrics, type MetricsOptions } from "../metrics/options.js";
import { assemble, type Parts } from "./assemble.js";
import { WorkerMetrics } from "./metrics/worker-metrics.js";
import { Outbox } from "./outbox.js";
import { Permits } from "./permits.js";
import { resolvePressure, type PressureOptions, type PressureThresholds } from "./pressure/options.js";
import type { AnyHandler } from "./execution.js";
import type { WorkerServices } from "./worker-services.js";

/**
 * Options of a worker. An option that is not given comes from the environment, then from sluice.toml, then from the
 * preset, then from the default.
 */
export interface WorkerOptions extends Some<"worker"> {
  /** One handler for each task type: `contract.handle(fn)`. */
  // oxlint-disable-next-line typescript/no-explicit-any -- of any input and output, which only `any` can say
  readonly handlers: readonly TaskHandler<any, any, any>[];
  /** A name for humans. Default: host and process id. */
  readonly name?: string;
  /** A set of claim loops, permits and connections that fit together. */
  readonly preset?: PresetName;
  /** Thresholds above which claims get smaller. */
  readonly pressure?: PressureOptions;
  /** Which metrics are collected, and where they are served. */
  readonly metrics?: MetricsOptions;
}

/** A snapshot of a worker's state. */
export interface WorkerStatus {
  readonly id: string | null;
  /** Whether the worker claims and its heartbeat is fresh, as /ready says. */
  readonly ready: boolean;
  /** Why it is not ready, as /ready says; empty if it is. */
  readonly reasons: readonly string[];
  readonly inFlight: number;
  readonly permitsInUse: number;
  readonly permitsMax: number;
  readonly completed: number;
  readonly failed: number;
  readonly claims: number;
  readonly acquired: number;
  /** Outcomes that arrived too late. */
  readonly refused: number;
  /** Handlers that ignored their signal and still run. */
  readonly abandoned: number;
  /** What currently makes claims smaller, or stops them. */
  readonly pressure: PressureState;
}

const OPTIONS = ["handlers", "name", "preset", "pressure", "metrics", ...namesOf("worker")];
const FLUSH_MS_MAX = 5_000;
const GRACE_RANGE = { min: 0, max: 24 * 3_600_000 };

/** Claims tasks, runs their handlers and records their outcomes. */
export class Worker {
  readonly #services: WorkerServices;
  readonly #handlers: readonly AnyHandler[];
  readonly #numbers: Values<"worker">;
  readonly #shares: ConnectionShares;
  readonly #name: string;
  readonly #clock: Clock = monotonicClock;
  readonly #permits: Permits;
  readonly #thresholds: PressureThresholds;
  readonly #outbox = new Outbox();
  readonly #metrics: WorkerMetrics;
  #parts: Parts | null = null;
  #state: "new" | "running" | "stopping" | "stopped" = "new";
  /** Why the worker could not start. */
  #failure: Error | null = null;
  #starting: Promise<void> | null = null;
  #stopping: Promise<void> | null = null;

  constructor(services: WorkerServices, options: WorkerOptions) {
    checkOptions("worker", options, OPTIONS);
    this.#services = services;
    this.#handlers = checkHandlers(options.handlers);
    const preset = resolvePreset(options.preset, services.layers).value;
    this.#numbers = resolveSection("worker", options, services.layers, preset).values;
    this.#shares = checkShares({ ...this.#numbers, apiConnections: services.apiConnections });
    this.#name = checkName("worker", options.name ?? `${hostname().slice(0, 80)}:${process.pid}`);
    this.#permits = new Permits(this.#numbers.maxConcurrentTasks);
    this.#thresholds = resolvePressure(options.pressure, services.layers);
    this.#metrics = new WorkerMetrics({
      settings: checkMetrics(options.metrics, services.layers),
      name: this.#name,
      leaseMs: this.#numbers.leaseMs,
      db: services.db,
      permits: this.#permits,
      outbox: this.#outbox,
      clock: this.#clock,
      parts: () => this.#parts,
      state: () => this.#state,
      status: () => this.status(),
    });
  }

  /** Registers and begins to claim. Throws if the database cannot be reached. */
  async start(): Promise<void> {
    if (this.#state === "running") throw new SluiceError("invalid_option", "this worker is already running");
    if (this.#state !== "new") throw this.#over();
    this.#state = "running";
    this.#starting = this.#start();
    return this.#starting;
  }

  #over(): SluiceError {
    if (this.#failure === null) return new SluiceError("stopped", `this worker is ${this.#state}: create a new one`);
    const message = `this worker failed to start; create a new one: ${this.#failure.message}`;
    return new SluiceError("stopped", message, { cause: this.#failure });
  }

  async #start(): Promise<void> {
    const streams = new Map<number, AnyHandler>();
    try {
      for (const h of this.#handlers) streams.set(await this.#services.declarations.stream(h.contract), h);
      await this.#metrics.open(streams);
      this.#parts = assemble(streams, {
        services: this.#services,
        numbers: this.#numbers,
        shares: this.#shares,
        name: this.#name,
        permits: this.#permits,
        outbox: this.#outbox,
        clock: this.#clock,
        meter: this.#metrics.meter,
        thresholds: this.#thresholds,
        running: () => this.#state === "running",
      });
      await this.#parts.checkRoom();
      await this.#parts.heartbeat.start();
    } catch (e) {
      this.#failure = e as Error;
      await this.#close();
      throw e;
    }
    this.#parts.pressure.start();
    this.#parts.keeper.start();
    this.#parts.claimer.start();
  }

  /**
   * Stops claiming, lets handlers finish for the grace time, hands the rest back without using up an attempt, and
   * unregisters. Later calls wait for the first one.
   */
  stop(options: { readonly graceMs?: number } = {}): Promise<void> {
    checkOptions("stop", options, ["graceMs"]);
    const graceMs = checkInteger("graceMs", options.graceMs ?? 20_000, GRACE_RANGE);
    this.#stopping ??= this.#stop(graceMs);
    return this.#stopping;
  }

  /** All metrics of the worker, in Prometheus text format. Also works after the worker has stopped. */
  metrics(): Promise<string> {
    return this.#metrics.text();
  }

  /** The URL that serves /metrics, /health, /live and /ready. Null without a port, before start and after stop. */
  get metricsUrl(): string | null {
    return this.#metrics.url;
  }

  status(): WorkerStatus {
    const { claimer, executions, heartbeat, pressure } = this.#parts ?? {};
    const reasons = this.#metrics.unready();
    return {
      id: heartbeat?.current?.id ?? null,
      ready: reasons.length === 0,
      reasons,
      inFlight: executions?.size ?? 0,
      permitsInUse: this.#permits.inUse,
      permitsMax: this.#permits.max,
      completed: executions?.completed ?? 0,
      failed: executions?.failed ?? 0,
      claims: claimer?.claims ?? 0,
      acquired: claimer?.acquired ?? 0,
      refused: claimer?.refused ?? 0,
      abandoned: executions?.abandoned ?? 0,
      pressure: pressure?.state ?? pressureOf([]),
    };
  }

  async #stop(graceMs: number): Promise<void> {
    // A partial start cannot be undone: wait until it succeeds or fails.
    await this.#starting?.catch(() => {});
    const parts = this.#parts;
    const wasRunning = this.#state === "running" && parts !== null;
    this.#state = "stopping";
    if (wasRunning) {
      parts.claimer.pause();
      parts.heartbeat.drain();
      parts.claimer.pump();
      await within(parts.claimer.settled(), graceMs);
      const handedBack = parts.executions.size;
      parts.executions.release(new SluiceError("stopped", "the worker is shutting down"));
      parts.claimer.pump();
      // guard: stop() waits until what it hands back is recorded -> test/worker/properties.test.ts: "stop() releases all tasks and returns all permits if the store can be reached"
      /* guard:flush */ await within(parts.claimer.settled(), FLUSH_MS_MAX); /* end */
      parts.claimer.stop();
      await within(Promise.all([parts.keeper.stop(), parts.heartbeat.stop()]), FLUSH_MS_MAX);
      this.#services.logger.info("the worker stopped", { name: this.#name, handedBack });
    }
    await this.#close();
  }

  /** Releases all resources, even if some fail to close. A database that hangs does not keep the port open. */
  async #close(): Promise<void> {
    await Promise.allSettled([this.#metrics.close(), this.#parts?.close()]);
    this.#state = "stopped";
    this.#services.onStopped();
  }
}

function checkShares(numbers: Parameters<typeof connectionsOf>[0]): ConnectionShares {
  const shares = connectionsOf(numbers);
  if (shares.problem === null) return shares;
  const details = { option: "dbConnections", ...shares };
  throw new SluiceError("invalid_option", shares.problem, { details });
}

function checkHandlers(handlers: unknown): readonly AnyHandler[] {
  if (!Array.isArray(handlers) || handlers.length === 0) {
    throw new SluiceError("invalid_option", "a worker needs at least one handler");
  }
  const seen = new Set<string>();
  for (const h of handlers as Partial<AnyHandler>[]) {
    if (typeof h?.run !== "function" || h.contract === undefined) {
      throw new SluiceError("invalid_option", "handlers must be made by task(...).handle(fn)");
    }
    const of = `${h.contract.queue}\u001f${h.contract.type}`;
    if (seen.has(of)) throw new SluiceError("invalid_option", `there are two handlers for task ${h.contract.type}`);
    seen.add(of);
  }
  return handlers as AnyHandler[];
}
