import type { Consumption, Shape } from "../../adapter.js";

/** How a queue is registered. */
export interface QueueOptions {
  readonly minPollingIntervalMs?: number;
  readonly globalConcurrency?: number;
  readonly workerConcurrency?: number;
  readonly partitionConcurrency?: number;
}

/** What a queue is for; nobody who consumes is known where it is only made. */
export type Use = Pick<Consumption, "shape" | "permits" | "latency">;

/** What differs between the variants. */
export interface Settings {
  /** Its client, or its SQL function. */
  readonly enqueue: "client" | "sql";
  readonly queue: (use: Use) => QueueOptions;
}

const AT_ONCE = 500;
const POLL_MS = 5;
// What is new, a slot that is free, the next of a key: found by the next poll, and in no other way.
const POLL_MS_WAITING = 1;

export const asIs: Settings = { enqueue: "client", queue: limitsOf };

export const tuned: Settings = {
  enqueue: "sql",
  queue: (use) => {
    const limits = limitsOf({ ...use, permits: use.permits ?? AT_ONCE });
    const waiting = use.latency || (limits.globalConcurrency ?? limits.partitionConcurrency) !== undefined;
    return { ...limits, minPollingIntervalMs: waiting ? POLL_MS_WAITING : POLL_MS };
  },
};

/** A key is a partition; an order is a partition that runs one at a time. */
function limitsOf({ shape: { ordered, limit, limitPerKey }, permits }: Use): QueueOptions {
  const partitionConcurrency = ordered === true ? 1 : limitPerKey;
  const workerConcurrency = permits === null ? undefined : Math.min(permits, limit ?? permits);
  return {
    ...(limit === undefined ? {} : { globalConcurrency: limit }),
    ...(partitionConcurrency === undefined ? {} : { partitionConcurrency }),
    ...(workerConcurrency === undefined ? {} : { workerConcurrency }),
  };
}

/** Whether tasks carry their key. */
export function isPartitioned({ ordered, limitPerKey }: Shape): boolean {
  return ordered === true || limitPerKey !== undefined;
}
