// The types of the model: tasks, their states, and limits with numbers.

export interface Place {
  readonly stream: Stream;
  readonly priority: number;
  readonly order: string | null;
  readonly blocks: boolean;
  readonly tenant: string | null;
  /** The totals that it passes at the claim; `bulk` is a group, given at enqueue. */
  readonly totals: readonly Total[];
  readonly attempts: number;
  readonly later: boolean;
  /** An idempotency key. */
  readonly key: string | null;
}

export type Stream = "bounded" | "free";
export type Total = "mail" | "bulk";
/** Limits that have a number: per key, totals, and a total of each type's own. */
export type Limit = "tenant" | Total | Stream;
export type Kind = "retry" | "fail" | "cancel" | "snooze" | "release";
export type State = "scheduled" | "waiting" | "parked" | "ready" | "running" | "suspect" | "over";

export interface Task extends Place {
  readonly id: number;
  readonly lanes: readonly string[];
  state: State;
  /** How many of its lanes it holds a slot of, from the first. */
  held: number;
  attempt: number;
  crashes: number;
  stopped: boolean;
  blocking: boolean;
  failed: boolean;
  due: boolean;
  /** Its place among the ready of its priority: see ownTurn. */
  turn: number;
  /** The turn that it had when it gave its slots back; it gets it again. */
  hadTurn: number | null;
}

/** What a tick of the one schedule enqueues. */
export const TICK: Place = {
  stream: "free",
  priority: 1,
  order: "x",
  blocks: false,
  tenant: "y",
  totals: [],
  attempts: 2,
  later: false,
  key: null,
};

export const DECLARED: Readonly<Record<Limit, number>> = {
  tenant: 2,
  mail: 2,
  bulk: Infinity,
  bounded: 3,
  free: Infinity,
};

/** The turn of a task that passed no lane, or was handed back: by its id, with room for a million between two. */
export function ownTurn(id: number): number {
  return id * 2 ** 20;
}

/** Higher priority first, then by turn: how the ready are claimed. */
export function compareTurns(a: Task, b: Task): number {
  return b.priority - a.priority || a.turn - b.turn;
}

/** Higher priority first, then age. */
export function compare(a: Task, b: Task): number {
  return b.priority - a.priority || a.id - b.id;
}
