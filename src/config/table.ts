import { checkSchemaName } from "../core/name.js";
import { checkHost, checkToken } from "./checks.js";
import type { Setting, ValueOf } from "./kinds.js";
import { presetNames } from "./presets.js";
import { checkUrl, maskUrl } from "./url.js";

const DAY_MS = 24 * 3_600_000;
const MIB = 1024 * 1024;
const AGE = { kind: "integer", min: 0, max: 3650 * DAY_MS } as const;
const BYTES = { kind: "integer", min: 1, max: 64 * MIB } as const;
const ADDRESS = { kind: "text", default: null, check: checkUrl, mask: maskUrl } as const;

/** A top-level key of sluice.toml: it decides several settings of a worker at once. */
export const presetSetting = {
  kind: "choice",
  env: "SLUICE_PRESET",
  words: presetNames,
  default: "default",
  help: "claim loops, permits and connections that fit together",
} as const satisfies Setting;

/**
 * All settings. Variables are named SLUICE_..., so that they do not collide with another program's, except for the
 * numbers of a worker, API_BUFFER and DATABASE_URL, whose names are agreed upon. A section is a section of sluice.toml,
 * where names are in snake_case. In code, "client" holds the options of connect, "worker" those of a worker, and the
 * others are objects within those.
 */
export const table = {
  client: {
    url: {
      ...ADDRESS,
      env: "DATABASE_URL",
      // Many shells use an empty text to mean "not set"; code that needs an address reports its absence.
      check: (label, url) => url === "" || checkUrl(label, url),
      help: "the database, postgres://...",
    },
    listenUrl: {
      ...ADDRESS,
      env: "SLUICE_LISTEN_URL",
      help: "url of a direct connection for wake-ups, if url leads to a pooler",
    },
    schema: {
      kind: "text",
      env: "SLUICE_SCHEMA",
      default: "sluice",
      check: (_, name) => checkSchemaName(name),
      help: "the schema of all tables and functions",
    },
    migrate: {
      kind: "boolean",
      env: "SLUICE_MIGRATE",
      default: true,
      help: "run missing migrations on connect; false: only check the version of the schema",
    },
    listen: {
      kind: "boolean",
      env: "SLUICE_LISTEN",
      default: true,
      help: "listen for wake-ups on a separate connection; false: only poll",
    },
    prepare: {
      kind: "boolean",
      env: "SLUICE_PREPARE",
      default: true,
      help: "use named statements; set false behind a pooler in transaction mode",
    },
    tracing: {
      kind: "boolean",
      env: "SLUICE_TRACING",
      default: true,
      help: "create spans if an OpenTelemetry SDK is registered",
    },
    apiConnections: {
      kind: "integer",
      env: "API_BUFFER",
      default: 7,
      min: 1,
      max: 1000,
      help: "connections for enqueue, queries and the listener",
    },
    payloadBytesMax: {
      ...BYTES,
      env: "SLUICE_MAX_PAYLOAD_BYTES",
      default: MIB,
      help: "maximum size of a task's input",
    },
    resultBytesMax: {
      ...BYTES,
      env: "SLUICE_MAX_RESULT_BYTES",
      default: MIB,
      help: "maximum size of a result; a larger one is stored truncated",
    },
    idempotencyMs: {
      ...AGE,
      env: "SLUICE_IDEMPOTENCY_MS",
      default: DAY_MS,
      help: "how long an idempotency key is remembered",
    },
  },
  worker: {
    maxConcurrentTasks: {
      kind: "integer",
      env: "MAX_CONCURRENT_TASKS",
      default: 1000,
      min: 1,
      max: 100_000,
      help: "maximum tasks in flight in this process (permits)",
    },
    claimBatchSize: {
      kind: "integer",
      env: "CLAIM_BATCH_SIZE",
      default: null,
      min: 1,
      max: 1000,
      help: "maximum tasks per claim; not set: 50, and up to 500 while there is a backlog of short tasks",
    },
    pollIntervalMs: {
      kind: "integer",
      env: "POLL_INTERVAL_MS",
      default: 100,
      min: 10,
      max: 60_000,
      help: "how often a worker polls; an idle worker with listen polls at most once a second",
    },
    claimLoops: {
      kind: "integer",
      env: "NUM_WORKERS",
      default: 1,
      min: 1,
      max: 64,
      help: "claims and settles in flight at once; 1 means 2, which is enough if claims are batched",
    },
    dbConnections: {
      kind: "integer",
      env: "MAX_DB_CONNECTIONS",
      default: 17,
      min: 1,
      max: 10_000,
      help: "all connections of a process with one worker, including the API buffer",
    },
    handlerConnections: {
      kind: "integer",
      env: "HANDLER_DB_CONNECTIONS",
      default: null,
      min: 1,
      max: 10_000,
      help: "connections for ctx.transaction of handlers; not set: all that remain",
    },
    payloadBytesInFlightMax: {
      kind: "integer",
      env: "MAX_PAYLOAD_BYTES_IN_FLIGHT",
      default: 64 * MIB,
      min: 1024,
      max: 1024 ** 4,
      help: "maximum size of all inputs and results in this process, as JSON text; bounds claims",
    },
    leaseMs: {
      kind: "integer",
      env: "LEASE_MS",
      default: 15_000,
      min: 500,
      max: 3_600_000,
      help: "a worker without a heartbeat for this long is dead, and other workers run its tasks",
    },
  },
  pressure: {
    memoryPercentMax: {
      kind: "integer",
      env: "SLUICE_PRESSURE_MEMORY_PERCENT_MAX",
      default: 80,
      min: 1,
      max: 99,
      off: true,
      help: "memory in use, in percent of the limit, above which claims are halved",
    },
    taskDurationP99MsMax: {
      kind: "integer",
      env: "SLUICE_PRESSURE_TASK_DURATION_P99_MS_MAX",
      default: 30_000,
      min: 1,
      max: 86_400_000,
      off: true,
      help: "p99 of task durations above which claims shrink to 0.7 of their size",
    },
    eventLoopDelayMsMax: {
      kind: "integer",
      env: "SLUICE_PRESSURE_EVENT_LOOP_DELAY_MS_MAX",
      default: 200,
      min: 10,
      max: 60_000,
      off: true,
      help: "delay of the event loop above which claims shrink to 0.7 of their size",
    },
  },
  metrics: {
    enabled: {
      kind: "boolean",
      env: "SLUICE_METRICS_ENABLED",
      default: true,
      help: "collect metrics; /health, /live and /ready work without them",
    },
    port: {
      kind: "integer",
      env: "SLUICE_METRICS_PORT",
      default: null,
      min: 0,
      max: 65_535,
      help: "port that serves /metrics, /health, /live and /ready; 0: any free port; not set: no server",
    },
    host: {
      kind: "text",
      env: "SLUICE_METRICS_HOST",
      default: "127.0.0.1",
      check: checkHost,
      help: "address that this server listens on; any but loopback needs a token",
    },
    token: {
      kind: "text",
      env: "SLUICE_METRICS_TOKEN",
      default: null,
      check: checkToken,
      mask: () => "***",
      help: "token that requests except /live and /ready must send: authorization: Bearer <token>",
    },
  },
  history: {
    succeededMs: {
      ...AGE,
      env: "SLUICE_HISTORY_SUCCEEDED_MS",
      default: DAY_MS,
      help: "how long a succeeded task is kept; 0: not at all, or a minute if it is awaited or part of a workflow",
    },
    failedMs: {
      ...AGE,
      env: "SLUICE_HISTORY_FAILED_MS",
      default: 7 * DAY_MS,
      help: "how long a failed task is kept, at least a minute",
    },
    cancelledMs: {
      ...AGE,
      env: "SLUICE_HISTORY_CANCELLED_MS",
      default: 7 * DAY_MS,
      help: "how long a cancelled task is kept, at least a minute",
    },
  },
} as const satisfies Readonly<Record<string, Readonly<Record<string, Setting>>>>;

export type Section = keyof typeof table;
/** The name of a setting in code. */
export type Name<S extends Section> = keyof (typeof table)[S] & string;
/** The effective values of a section. */
export type Values<S extends Section> = {
  readonly [N in Name<S>]: (typeof table)[S][N] extends infer T extends Setting ? ValueOf<T> : never;
};
/** Some values of a section, as code gives them. */
export type Some<S extends Section> = { readonly [N in Name<S>]?: Values<S>[N] | undefined };

export const sections = Object.keys(table) as Section[];

export function namesOf<S extends Section>(section: S): Name<S>[] {
  return Object.keys(table[section]) as Name<S>[];
}

export function settingOf<S extends Section>(section: S, name: Name<S>): Setting {
  return table[section][name] as Setting;
}

/** The name in sluice.toml: maxConcurrentTasks becomes max_concurrent_tasks. */
export function snakeCase(name: string): string {
  return name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}
