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
    help: "Always 1. Labels: the versions of Sluice and Node.js.",
    labels: ["version", "node"],
  },
  worker_ready: {
    kind: "gauge",
    help: "1 if the worker claims tasks and its heartbeat is fresh, else 0, as /ready reports.",
  },
  worker_heartbeat_age_seconds: {
    kind: "gauge",
    help: "Time since the last answered heartbeat was sent. +Inf without a session.",
  },
  worker_in_flight_tasks: {
    kind: "gauge",
    help: "Running handlers.",
  },
  worker_tasks_acquired_total: {
    kind: "counter",
    help: "Claimed tasks.",
  },
  worker_tasks_completed_total: {
    kind: "counter",
    help: "Completions that the database recorded.",
  },
  worker_tasks_unconfirmed_total: {
    kind: "counter",
    help: "Completions that the database may or may not have recorded: the reply was lost.",
  },
  worker_tasks_refused_total: {
    kind: "counter",
    help: "Outcomes that the database refused, because the claim was lost or the outcome was already recorded.",
  },
  worker_tasks_ended_total: {
    kind: "counter",
    help:
      "Finished executions by outcome as the worker saw it, including refused ones. Whether a failure counts as " +
      "retried or failed depends on the attempts in the worker's own contract.",
    labels: ["type", "outcome"],
  },
  worker_task_duration_seconds: {
    kind: "histogram",
    help: "Time from the call of a handler to its end.",
    labels: ["type"],
    buckets: RUN_SECONDS,
  },
  worker_claims_total: {
    kind: "counter",
    help: "Claims that the database answered, including empty ones.",
  },
  worker_claim_size: {
    kind: "histogram",
    help: "Tasks per claim.",
    buckets: CLAIM_TASKS,
  },
  worker_statements_failed_total: {
    kind: "counter",
    help: "Claims and settles that failed or got no reply, and were sent again.",
  },
  worker_busy_seconds_total: {
    kind: "counter",
    help: "Total time of all tasks in flight. Its rate is the average number of tasks in flight.",
  },
  worker_idle_ratio: {
    kind: "gauge",
    help: "Average share of unused permits over the last minute.",
  },
  worker_handlers_abandoned: {
    kind: "gauge",
    help: "Handlers that ignored their abort signal and still run, although their execution has ended.",
  },
  worker_payload_bytes: {
    kind: "gauge",
    help: "Size of all inputs and results in this process, as JSON text.",
  },
  worker_pressure: {
    kind: "gauge",
    help:
      "1 for the current state of the worker: normal, reduced (smaller claims) or stopped (no claims; if permits are " +
      "short, only as many as tasks end).",
    labels: ["state"],
  },
  worker_pressure_reason: {
    kind: "gauge",
    help: "1 for each signal that reduces or stops the claims of the worker.",
    labels: ["reason"],
  },
  semaphore_permits_available: {
    kind: "gauge",
    help: "Free permits. With a maximum of 10 or more, a tenth of the permits is kept free.",
  },
  semaphore_permits_in_use: {
    kind: "gauge",
    help: "Permits of tasks that run, are being claimed or wait to be settled.",
  },
  db_connections_active: {
    kind: "gauge",
    help: "Connections in use, by pool: claim, handlers, api.",
    labels: ["pool"],
  },
  db_connections_idle: {
    kind: "gauge",
    help: "Free connections, by pool.",
    labels: ["pool"],
  },
  db_connections_wait_seconds: {
    kind: "histogram",
    help: "Time that callers waited for a connection of the pool.",
    labels: ["pool"],
    buckets: STATEMENT_SECONDS,
  },
  task_acquisition_latency_seconds: {
    kind: "histogram",
    help: "Time from sending a claim to its reply.",
    buckets: STATEMENT_SECONDS,
  },
  task_processing_latency_seconds: {
    kind: "histogram",
    help: "Time from the call of a handler to the reply that confirms its completion.",
    buckets: RUN_SECONDS,
  },
  task_queue_wait_seconds: {
    kind: "histogram",
    help: "Time from when a task was due to its claim, sampled: one task per claim.",
    buckets: WAIT_SECONDS,
  },
  concurrency_slots_active: {
    kind: "gauge",
    help: "Slots of the limit in use by all workers; for GROUP/*, those of the key with the most.",
    labels: ["group"],
  },
  concurrency_slots_limit: {
    kind: "gauge",
    help: "Slots of the limit; for GROUP/*, slots per key. +Inf while the limit is lifted.",
    labels: ["group"],
  },
  concurrency_waiting: {
    kind: "gauge",
    help: "Tasks of all workers that wait for a slot of the limit; counted up to 1000.",
    labels: ["group"],
  },
  concurrency_limits_omitted: {
    kind: "gauge",
    help: "Limits without slot metrics, because there are too many limits; counted up to 10000.",
    labels: [],
  },
  concurrency_acquisition_total: {
    kind: "counter",
    help:
      "acquired: tasks that passed the limit. rejected: those among them that waited for a slot, because all slots " +
      "were in use at some time after they were due.",
    labels: ["group", "result"],
  },
  concurrency_wait_seconds: {
    kind: "histogram",
    help: "Time from when a task was due to its claim, for every first attempt that passed the limit.",
    labels: ["group"],
    buckets: WAIT_SECONDS,
  },
} as const satisfies Record<string, Definition>;

export type MetricName = keyof typeof catalogue;
