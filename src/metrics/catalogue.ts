/** The definition of a metric: everything about it that does not change. */
export interface Definition {
  readonly kind: "counter" | "gauge" | "histogram";
  readonly help: string;
  readonly labels?: readonly string[];
  /** Upper bounds of a histogram, in the unit of its name. */
  readonly buckets?: readonly number[];
}

export const PREFIX = "sluice_";

// The maximum number of distinct values of a label; further values are counted together, as OTHER. For limits that are
// read from the database the maximum is half of that, because each may be two groups.
export const LABEL_VALUES_MAX = 100;
export const OTHER = "_other";

// From a handler that does nothing to one that takes the default timeout of five minutes.
const RUN_SECONDS = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300];
// Duration of one statement: a lost reply is given up after ten seconds.
const STATEMENT_SECONDS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10];
// A backlog may be a day old.
const WAIT_SECONDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5, 15, 60, 300, 1800, 7200, 86400];
const CLAIM_TASKS = [0, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000];

/** All metrics of a worker, by name without the prefix. docs/operate/metrics.md explains each of them. */
export const catalogue = {
  build_info: {
    kind: "gauge",
    help: "Always 1. The version of Sluice and of Node.js.",
    labels: ["version", "node"],
  },
  worker_ready: {
    kind: "gauge",
    help: "1 if the worker claims and its heartbeat is fresh, else 0: what /ready answers.",
  },
  worker_heartbeat_age_seconds: {
    kind: "gauge",
    help: "Since the last heartbeat that the database answered was sent. +Inf without a session.",
  },
  worker_in_flight_tasks: {
    kind: "gauge",
    help: "Tasks whose handler runs.",
  },
  worker_tasks_acquired_total: {
    kind: "counter",
    help: "Tasks that claims brought.",
  },
  worker_tasks_completed_total: {
    kind: "counter",
    help: "Completions that the database took.",
  },
  worker_tasks_unconfirmed_total: {
    kind: "counter",
    help: "Completions of which nobody knows whether the database took them: the reply was lost.",
  },
  worker_tasks_refused_total: {
    kind: "counter",
    help: "Outcomes that the database refused, because their claim was lost or they were recorded before.",
  },
  worker_tasks_ended_total: {
    kind: "counter",
    help: "Executions that ended, by what the worker made of it; refused ones included. Retried or failed: by the attempts of its own contract.",
    labels: ["type", "outcome"],
  },
  worker_task_duration_seconds: {
    kind: "histogram",
    help: "From the call of a handler to its end.",
    labels: ["type"],
    buckets: RUN_SECONDS,
  },
  worker_claims_total: {
    kind: "counter",
    help: "Claims that the database answered, with tasks or without.",
  },
  worker_claim_size: {
    kind: "histogram",
    help: "Tasks that a claim brought.",
    buckets: CLAIM_TASKS,
  },
  worker_statements_failed_total: {
    kind: "counter",
    help: "Claims and recordings of outcomes that failed or got no reply, and were sent again.",
  },
  worker_busy_seconds_total: {
    kind: "counter",
    help: "Time of all tasks in flight, added up: its rate is how many were in flight on average.",
  },
  worker_idle_ratio: {
    kind: "gauge",
    help: "Share of the permits that no running task used, on average over the last minute.",
  },
  worker_handlers_abandoned: {
    kind: "gauge",
    help: "Handlers that ignored their signal and still run, although their task goes on without them.",
  },
  worker_payload_bytes: {
    kind: "gauge",
    help: "Inputs and results in this process, as JSON text.",
  },
  worker_pressure: {
    kind: "gauge",
    help: "1 for the state the worker is in: normal, reduced (claims less) or stopped (claims nothing, or for want of permits only in place of what ends).",
    labels: ["state"],
  },
  worker_pressure_reason: {
    kind: "gauge",
    help: "1 for each signal that makes the worker claim less, or not at all.",
    labels: ["reason"],
  },
  semaphore_permits_available: {
    kind: "gauge",
    help: "Permits that nothing uses. With a maximum of 10 or more claims on them stop at a tenth.",
  },
  semaphore_permits_in_use: {
    kind: "gauge",
    help: "Permits of tasks that run, are being claimed or wait to be recorded.",
  },
  db_connections_active: {
    kind: "gauge",
    help: "Connections in use. Pools: claim, handlers, api.",
    labels: ["pool"],
  },
  db_connections_idle: {
    kind: "gauge",
    help: "Connections that are free.",
    labels: ["pool"],
  },
  db_connections_wait_seconds: {
    kind: "histogram",
    help: "How long somebody waited for a connection of the pool.",
    labels: ["pool"],
    buckets: STATEMENT_SECONDS,
  },
  task_acquisition_latency_seconds: {
    kind: "histogram",
    help: "From sending a claim to its reply.",
    buckets: STATEMENT_SECONDS,
  },
  task_processing_latency_seconds: {
    kind: "histogram",
    help: "From the call of a handler to the reply that its completion is recorded.",
    buckets: RUN_SECONDS,
  },
  task_queue_wait_seconds: {
    kind: "histogram",
    help: "From when a task was due to its claim: of one task per claim.",
    buckets: WAIT_SECONDS,
  },
  concurrency_slots_active: {
    kind: "gauge",
    help: "Slots of the limit that are out, everywhere; for GROUP/* of the key with the most.",
    labels: ["group"],
  },
  concurrency_slots_limit: {
    kind: "gauge",
    help: "The number in force; for GROUP/* that of each key. +Inf while it is lifted.",
    labels: ["group"],
  },
  concurrency_waiting: {
    kind: "gauge",
    help: "Tasks that stand before the limit, everywhere; counted up to 1000.",
    labels: ["group"],
  },
  concurrency_limits_omitted: {
    kind: "gauge",
    help: "Limits whose slots are not told, because there are too many; counted up to 10000.",
    labels: [],
  },
  concurrency_acquisition_total: {
    kind: "counter",
    help: "acquired: tasks that passed the limit. rejected: those of them that had to wait for a slot, because all were out at some moment since they were due.",
    labels: ["group", "result"],
  },
  concurrency_wait_seconds: {
    kind: "histogram",
    help: "From when a task that passed the limit was due to its claim, if it was not tried before.",
    labels: ["group"],
    buckets: WAIT_SECONDS,
  },
} as const satisfies Record<string, Definition>;

export type MetricName = keyof typeof catalogue;
