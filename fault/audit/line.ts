// The words of the log. Everybody who took part writes what he saw, on a connection of his own to a
// server that no fault touches; the checker reads nothing else. Times are that server's
// `clock_timestamp()`, in milliseconds. The queue's server shows the same time until its clock is set.

/** What a producer says about a task, and its handler repeats at every start. */
export interface Claims {
  /** `producer/number`: the producer's own name for the task, which travels in its input. */
  readonly tag: string;
  readonly type: string;
  readonly orderKey: string | null;
  /** The how many-th of its order key. Each key has one producer, who offers a place when the last is acknowledged. */
  readonly place: number | null;
  /** Every limit that counts it, as `name` for a total or `name/key`. */
  readonly limits: readonly string[];
  /** Not before this time, by the clock of the database. */
  readonly runAt: number | null;
  /** How many attempts it has. */
  readonly attempts: number;
  /** After how long its handler is told to stop, where it has a timeout. */
  readonly timeoutMs?: number | null;
}

/** One node of a flow, as its producer claims it. Nodes come before those that come after them. */
export interface FlowNode {
  readonly name: string;
  /** success: they have succeeded. end: they are over. */
  readonly after: readonly string[];
  readonly on: "success" | "end";
  /** task: one task. The others: an item each, and what becomes of them when one fails. */
  readonly policy: "task" | "failFast" | "finish" | "collect";
  /** Of its tasks, in the order of the items. */
  readonly tags: readonly string[];
  /** One link of a sequence. */
  readonly chained: boolean;
}

/** What nodes came to, as a task was given it: the claims of successes, null for what did not succeed. */
export type Heard = Readonly<Record<string, string | readonly (string | null)[]>>;

/** What holds a waiting task, as the queue explains it. */
export interface Hold {
  /** `next`: nothing. */
  readonly kind: string;
  /** Of a limit, or of the node with a window. */
  readonly name?: string | null;
  /** Null for a total. */
  readonly key?: string | null;
  readonly slots?: number;
  /** How many wait before it. */
  readonly before?: number | null;
  /** The tasks that have the slots it waits for. */
  readonly holders?: readonly Holder[];
}

export interface Holder {
  readonly task: string;
  readonly type: string;
  readonly runs: boolean;
}

/** A task that waits, and everything that holds it just now. */
export interface Waiting {
  readonly task: string;
  readonly type: string;
  /** No other task waits before it for one of its totals, and no slot of them is kept for another. */
  readonly first: boolean;
  readonly reasons: readonly Hold[];
}

/** How a handler ended, as the handler itself saw it. */
export type Ended =
  | { readonly how: "snoozed"; readonly reason: null; readonly snoozeMs: number }
  | { readonly how: Ending; readonly reason: string | null };

type Ending =
  /** It returned. */
  | "completed"
  /** It threw an ordinary error: one attempt is used up. */
  | "thrown"
  /** It threw a cancel. */
  | "cancelled"
  /** Its signal was aborted and it gave up: see `reason`. */
  | "left";

export type Line = { readonly at: number; readonly process: string } & (
  | /** A producer is about to enqueue it. */ ({ readonly kind: "offered" } & Claims)
    /** Enqueue, or the commit of the transaction around it, has returned. */
  | { readonly kind: "acknowledged"; readonly tag: string; readonly task: string }
  /** The transaction around the enqueue was rolled back: it must never run. */
  | { readonly kind: "withdrawn"; readonly tag: string }
  /** The first thing a handler does. */
  | ({
      readonly kind: "start";
      readonly task: string;
      readonly claim: string;
      readonly attempt: number;
      readonly heard?: Heard;
    } & Claims)
  /**
   * The last thing a handler does: what it returns or throws next is what is recorded. A handler that
   * completes its task by a transaction of its own writes it before the commit. `reason`: the code of
   * the abort, for `left` (lease_lost, timeout, shutdown, cancelled). `snoozeMs`: for how long. `heard`: of
   * a handler that fanned out, what came back.
   */
  | ({
      readonly kind: "end";
      readonly task: string;
      readonly claim: string;
      readonly heard?: Heard;
    } & Ended)
  /** The database has recorded an outcome: written by a trigger in the transaction that records it. */
  | {
      readonly kind: "accepted";
      readonly task: string;
      readonly state: "succeeded" | "failed" | "cancelled";
      readonly attempt: number;
      /** Of a success: the claim under which its handler ran, as that handler returned it. */
      readonly claim: string | null;
      /** Of a failure: why, as the database says. `poisoned`: in hand at four crashes, the last time alone. */
      readonly code?: string | null;
      /** Of a part of a flow: its tag, also if it never ran. */
      readonly tag?: string | null;
    }
  /**
   * A flow is a run of a workflow: run is said of handlers here. Before it is started, with its parts, each of
   * which is offered besides. `parent`: the tag of the task whose handler makes it, for a fan-out of a handler.
   */
  | {
      readonly kind: "flowOffered";
      readonly flow: string;
      readonly parent: string | null;
      readonly nodes: readonly FlowNode[];
    }
  /** As for tasks. */
  | {
      readonly kind: "flowAcknowledged" | "flowWithdrawn" | "flowCancelling" | "flowRetrying" | "flowNotRetried";
      readonly flow: string;
    }
  /** At rest: what became of it. */
  | {
      readonly kind: "flowAtRest";
      readonly flow: string;
      readonly state: "running" | "succeeded" | "failed" | "cancelled";
    }
  /**
   * What a worker says of itself, as it serves it to Prometheus: the counters of completions. `last`: it
   * has stopped in good order, and this is the end of its count.
   */
  | { readonly kind: "scraped"; readonly text: string; readonly last: boolean }
  /** A worker has started, and serves tasks of these types and no others. */
  | { readonly kind: "serves"; readonly types: readonly string[] }
  /** The process is known to be gone. */
  | { readonly kind: "dead" }
  /** It was told to stop in good order, and has ended. */
  | { readonly kind: "terminating" }
  /**
   * From `disturbed` to `restored` the process (`*`: all of them) may be unable to reach the database or
   * to notice time passing, because of the fault `what`. Written before the fault begins and after it is over.
   */
  | { readonly kind: "disturbed" | "restored"; readonly what: string }
  /** Before and after the clock of the queue's database is set forward, or back (below 0). */
  | { readonly kind: "clockMoving" | "clockMoved"; readonly byMs: number }
  /**
   * Before and after a change of a limit's number. `slots`: null for no limit. `limit`: a total as `name`,
   * the number of every key as `name/*` (or `name`, where there is no total of that name), of one as `name/key`.
   */
  | {
      readonly kind: "changing" | "changed";
      readonly limit: string;
      readonly slots: number | null;
    }
  /** Before and after. Nothing of the queue starts from `paused` to `resuming`. */
  | {
      readonly kind: "pausing" | "paused" | "resuming" | "resumed";
      readonly types: readonly string[];
    }
  /**
   * Somebody is about to cancel it, or to retry it by hand. `notRetried`: the answer to the latter was
   * that it cannot be, or the question never reached the database, so that it excuses nothing.
   */
  | { readonly kind: "cancelling" | "retrying" | "notRetried"; readonly task: string }
  /**
   * Some waiting tasks, all at one moment, and what holds them. `open`: how many tasks of the whole queue could be
   * claimed then. `room`: how many more the workers could take, by their last heartbeats.
   */
  | {
      readonly kind: "explained";
      readonly open: number;
      readonly room: number;
      readonly tasks: readonly Waiting[];
    }
  /** A fault that may keep tasks waiting begins, and is over. Faults that only change numbers and tasks write neither. */
  | { readonly kind: "faultBegun" | "faultOver"; readonly what: string }
  /** At rest, when all is over: the slots of a limit that the database counts as used. */
  | { readonly kind: "held"; readonly limit: string; readonly slots: number }
  /** At rest: something the schema's own view finds wrong, or a task that is in no final state. */
  | { readonly kind: "wrong"; readonly what: string }
);

/** What holds for the whole run. */
export interface Terms {
  readonly leaseMs: number;
  /** A dead worker's tasks start again within the lease and this. */
  readonly recoverMs: number;
  /** The numbers at the beginning, as `name` (a total) or `name/*` (for each key). */
  readonly limits: Readonly<Record<string, number>>;
}
