import type pg from "pg";
import { pressureReasons, pressureWords } from "../../core/pressure.js";
import type { Clock } from "../../core/ports.js";
import { LABEL_VALUES_MAX } from "../../metrics/catalogue.js";
import { Exposition, type Readers } from "../../metrics/expose.js";
import { unready } from "../../metrics/health.js";
import type { Sample } from "../../metrics/histogram.js";
import { IdleRatio } from "../../metrics/idle.js";
import type { MetricsSettings } from "../../metrics/options.js";
import { MetricsServer } from "../../metrics/serve.js";
import { Tally } from "../../metrics/tally.js";
import { packageVersion } from "../../metrics/version.js";
import type { Database } from "../../postgres/database.js";
import { readLimitNames, readSlots, type GroupSlots } from "../../postgres/slots.js";
import { onWait } from "../../postgres/waits.js";
import type { Parts } from "../assemble.js";
import { LimitSlots } from "./limit-slots.js";
import { noMeter, type Meter } from "./meter.js";
import { LimitNames } from "./limit-names.js";
import type { Outbox } from "../outbox.js";
import type { Permits } from "../permits.js";
import type { AnyHandler } from "../execution.js";
import type { WorkerStatus } from "../worker.js";

interface WorkerMetricsOptions {
  readonly settings: MetricsSettings;
  readonly name: string;
  readonly leaseMs: number;
  readonly db: Database;
  readonly permits: Permits;
  readonly outbox: Outbox;
  readonly clock: Clock;
  readonly parts: () => Parts | null;
  readonly state: () => "new" | "running" | "stopping" | "stopped";
  readonly status: () => WorkerStatus;
}

interface Connections {
  readonly active: number;
  readonly idle: number;
}

/** Collects a worker's metrics and health, and serves them. */
export class WorkerMetrics {
  readonly #o: WorkerMetricsOptions;
  readonly #tally: Tally;
  readonly #limitSlots: LimitSlots;
  readonly #limitNames: LimitNames;
  readonly #idle: IdleRatio;
  readonly #exposition: Exposition;
  #server: MetricsServer | null = null;
  #hush: () => void = () => {};

  constructor(options: WorkerMetricsOptions) {
    this.#o = options;
    const { clock, db, permits } = options;
    this.#tally = new Tally(() => void this.#limitNames.ask());
    const { groups } = this.#tally;
    this.#limitNames = new LimitNames({ groups, read: (limits) => readLimitNames(db, limits) });
    this.#idle = new IdleRatio(permits.max, clock.now());
    this.#limitSlots = new LimitSlots({
      clock,
      read: async () => {
        const names = groups.names.map((group) => group.replace(/\/\*$/, ""));
        return readSlots(db, names, LABEL_VALUES_MAX / 2);
      },
    });
    this.#exposition = new Exposition(this.#readers());
  }

  /** Receives the worker's events. */
  get meter(): Meter {
    return this.#o.settings.enabled ? this.#tally : noMeter;
  }

  /** The URL of the metrics server; null if there is none. */
  get url(): string | null {
    return this.#server?.url ?? null;
  }

  /** Empty if metrics are disabled. */
  async text(): Promise<string> {
    return this.#o.settings.enabled ? this.#exposition.text() : "";
  }

  /** Throws `port_unavailable`, or `invalid_option` if the registry belongs to another worker. */
  async open(handlers: ReadonlyMap<number, AnyHandler>): Promise<void> {
    const { settings, db } = this.#o;
    for (const [stream, { contract }] of handlers) this.#tally.serve(stream, contract.type, groupsOf(contract));
    if (settings.enabled && settings.registry !== null) this.#exposition.join(settings.registry);
    // A pool supplied by the caller is left unchanged. In that case `db.aside` is a separate pool.
    if (settings.enabled && db.aside === db.api) this.#hush = onWait(db.api, (ms) => this.#tally.waited("api", ms));
    if (settings.serve === null) return;
    this.#server = await MetricsServer.open(settings.serve, {
      metrics: () => this.text(),
      health: () => this.#health(),
      unready: () => this.unready(),
    });
  }

  async close(): Promise<void> {
    this.#hush();
    this.#exposition.withdraw();
    await this.#server?.close();
  }

  #health(): object {
    const { name, state, status, parts } = this.#o;
    const { ready, reasons, ...rest } = status();
    return {
      name,
      version: packageVersion(),
      state: state(),
      ready,
      reasons,
      heartbeatAgeMs: this.#heartbeatAgeMs(),
      ...(parts() === null ? {} : rest),
    };
  }

  /** The reasons why the worker does not claim; empty if it does. */
  unready(): string[] {
    const { state, leaseMs, parts } = this.#o;
    const joined = parts();
    return unready({
      state: joined === null && state() === "running" ? "new" : state(),
      heartbeatAgeMs: this.#heartbeatAgeMs(),
      leaseMs,
      suspecting: joined?.suspects.busy ?? false,
    });
  }

  #heartbeatAgeMs(): number | null {
    const { clock, leaseMs, parts } = this.#o;
    const session = parts()?.heartbeat.current ?? null;
    return session === null ? null : clock.now() - (session.leaseUntilMs - leaseMs);
  }

  #readers(): Readers {
    const [tally, { permits, outbox, clock }] = [this.#tally, this.#o];
    const parts = (): Parts | null => this.#o.parts();
    return {
      build_info: () => [{ labels: { version: packageVersion(), node: process.versions.node }, value: 1 }],
      worker_ready: () => (this.unready().length === 0 ? 1 : 0),
      worker_heartbeat_age_seconds: () => (this.#heartbeatAgeMs() ?? Infinity) / 1_000,
      worker_in_flight_tasks: () => parts()?.executions.size ?? 0,
      worker_tasks_acquired_total: () => tally.acquired,
      worker_tasks_completed_total: () => tally.completions,
      worker_tasks_unconfirmed_total: () => outbox.unconfirmed,
      worker_tasks_refused_total: () => tally.refusals,
      worker_tasks_ended_total: () => tally.ends(),
      worker_task_duration_seconds: (name) => tally.durations(name),
      worker_claims_total: () => tally.claims,
      worker_claim_size: (name) => tally.claimSizes(name),
      worker_statements_failed_total: () => tally.failures,
      worker_busy_seconds_total: () => tally.busyMs(clock.now()) / 1_000,
      worker_idle_ratio: () => this.#idle.look(clock.now(), tally.busyMs(clock.now())),
      worker_handlers_abandoned: () => parts()?.executions.abandoned ?? 0,
      worker_payload_bytes: () => (parts()?.executions.inputLength ?? 0) + outbox.resultLength,
      worker_pressure: () => this.#pressure(),
      worker_pressure_reason: () => this.#pressureReasons(),
      semaphore_permits_available: () => permits.free,
      semaphore_permits_in_use: () => permits.inUse,
      db_connections_active: () => this.#connections(({ active }) => active),
      db_connections_idle: () => this.#connections(({ idle }) => idle),
      db_connections_wait_seconds: (name) => tally.connectionWaits(name),
      task_acquisition_latency_seconds: (name) => tally.acquisitionLatency(name),
      task_processing_latency_seconds: (name) => tally.processingLatency(name),
      task_queue_wait_seconds: (name) => tally.queueWait(name),
      concurrency_slots_active: () => this.#slots(({ used }) => used),
      concurrency_slots_limit: () => this.#slots(({ slots }) => slots ?? Infinity),
      concurrency_waiting: () => this.#slots(({ waiting }) => waiting),
      concurrency_limits_omitted: async () => (await this.#limitSlots.read()).omitted,
      concurrency_acquisition_total: () => this.#limitNames.known().then(() => tally.groups.acquisitions()),
      concurrency_wait_seconds: (name) => this.#limitNames.known().then(() => tally.groups.waits(name)),
    };
  }

  #pressure(): Sample[] {
    const now = this.#o.parts()?.pressure.state.state ?? "normal";
    return pressureWords.map((state) => ({ labels: { state }, value: state === now ? 1 : 0 }));
  }

  #pressureReasons(): Sample[] {
    const now = this.#o.parts()?.pressure.state.reasons ?? [];
    return pressureReasons.map((reason) => ({
      labels: { reason },
      value: now.includes(reason) ? 1 : 0,
    }));
  }

  #connections(of: (connections: Connections) => number): Sample[] {
    const parts = this.#o.parts();
    const none = { active: 0, idle: 0 };
    const pools = {
      claim: parts?.claimer.connections ?? none,
      handlers: parts === null ? none : connectionsOf(parts.pool),
      api: connectionsOf(this.#o.db.api),
    };
    return Object.entries(pools).map(([pool, at]) => ({ labels: { pool }, value: of(at) }));
  }

  async #slots(of: (slots: GroupSlots) => number): Promise<Sample[]> {
    const { slots } = await this.#limitSlots.read();
    return slots.map((at) => ({ labels: { group: at.group }, value: of(at) }));
  }
}

function connectionsOf({ totalCount, idleCount }: pg.Pool): Connections {
  return { active: totalCount - idleCount, idle: idleCount };
}

/** The limits that every task of the contract passes. Limits chosen at enqueue become known when a task meets them. */
function groupsOf({ type, concurrency, limitList }: AnyHandler["contract"]): string[] {
  const own = concurrency === null ? [] : [type];
  const others = (limitList ?? []).flatMap(({ limit: { name, total, perKey } }) => [
    ...(total === undefined ? [] : [name]),
    ...(perKey === undefined ? [] : [`${name}/*`]),
  ]);
  return [...own, ...others];
}
