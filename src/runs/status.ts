import type { Database } from "../postgres/database.js";
import {
  inspectNodes,
  inspectRun,
  type NodeStatus,
  type RunState,
  type RunStatus as RunRow,
} from "../postgres/workflow/inspect.js";
import type { NodeState } from "../workflow/picture.js";

/** Why a node or an item failed or was cancelled. */
export interface RunError {
  readonly name: string;
  /** For a cancelled node or item: the given reason. */
  readonly message: string;
  /** For a cancelled node or item: `task_cancelled`. */
  readonly code: string | null;
}

/** One node of a run. */
export interface RunNode {
  readonly name: string;
  readonly kind: "task" | "each" | "when" | "sleep" | "waitFor";
  /** The type of its tasks. */
  readonly type: string | null;
  readonly state: NodeState;
  /** The number of its tasks (the items of an `each`, or one), and how many of them have ended in each state. */
  readonly counts: Readonly<Record<"total" | "succeeded" | "failed" | "cancelled", number>>;
  /**
   * The number of unfinished tasks that its window has admitted, even while a total of their own is full. For a node
   * with one task: whether that task is running. Null if the node has several tasks and no window.
   */
  readonly started: number | null;
  /** The number of all other unfinished tasks. Null in the same case. */
  readonly waiting: number | null;
  readonly window: number | null;
  /** The id of its task, for a node with one task. */
  readonly task: string | null;
  readonly startedAt: Date | null;
  readonly finishedAt: Date | null;
  /**
   * Why the node failed or was cancelled, even if a branch has handled that. For an `each`, `items` returns the error
   * of every item.
   */
  readonly error: RunError | null;
  /** The name of the event that a waitFor waits for. */
  readonly event: string | null;
  /** The end of a sleep, or of the timeout of a waitFor, while it lasts. */
  readonly until: Date | null;
  /** The node has tasks, or tasks to be placed, and no live worker serves their type. */
  readonly unserved: boolean;
  /** For a node with one task: the error of its last failed attempt, while the task is retried. */
  readonly lastError: RunError | null;
}

/** A run in a list. */
export interface RunSummary {
  readonly id: string;
  readonly workflow: string;
  readonly state: RunState;
  readonly createdAt: Date;
  readonly finishedAt: Date | null;
  /** The reason of the cancellation, if one was given. */
  readonly reason: string | null;
}

/** The current status of a run. */
export interface RunStatus extends RunSummary {
  /** From 0 to 1: the share of its nodes that have ended, with the items of an `each` included. */
  readonly progress: number;
  readonly nodes: readonly RunNode[];
}

const OPEN: readonly NodeState[] = ["running", "placing", "held"];
const OVER: readonly NodeState[] = ["succeeded", "failed", "cancelled", "skipped"];

/**
 * Returns the run and its nodes, or null if it does not exist. Reads the run first: a run that has ended has no open
 * node.
 */
export async function statusOf(db: Database, id: string): Promise<RunStatus | null> {
  const run = await inspectRun(db, id);
  if (run === null) return null;
  const nodes = (await inspectNodes(db, id)).map(nodeOf);
  return { ...summaryOf(run), progress: progressOf(nodes), nodes };
}

export function summaryOf({ id, name, state, createdAt, finishedAt, outcome }: RunRow): RunSummary {
  const reason = (outcome as { reason?: string | null } | null)?.reason ?? null;
  return { id, workflow: name, state, createdAt, finishedAt, reason };
}

function nodeOf(node: NodeStatus): RunNode {
  const { name, kind, type, state, total, succeeded, failed, cancelled } = node;
  const { started, window, task, startedAt, finishedAt, event, until, unserved } = node;
  const counts = { total, succeeded, failed, cancelled };
  const error = errorOf(state, node.error);
  const lastError = node.lastError === null ? null : errorOf("failed", node.lastError);
  const open = OPEN.includes(state) ? total - succeeded - failed - cancelled : 0;
  const waiting = started === null ? null : open - started;
  const tasks = { counts, started, waiting, window, task, unserved };
  return { name, kind, type, state, ...tasks, startedAt, finishedAt, error, event, until, lastError };
}

/** Returns the public form of the error that is stored with a node or an item. */
export function errorOf(state: string, kept: unknown): RunError | null {
  const said = (kept ?? {}) as Partial<Record<"name" | "message" | "code" | "reason", unknown>>;
  if (state === "cancelled") {
    const message = textOf(said.reason) ?? textOf(said.message) ?? "no reason given";
    return { name: "SluiceError", message, code: "task_cancelled" };
  }
  if (state !== "failed") return null;
  const message = textOf(said.message) ?? "no reason given";
  return { name: textOf(said.name) ?? "Error", message, code: textOf(said.code) };
}

function textOf(said: unknown): string | null {
  return typeof said === "string" ? said : null;
}

function progressOf(nodes: readonly RunNode[]): number {
  if (nodes.length === 0) return 1;
  return nodes.reduce((sum, node) => sum + partOver(node), 0) / nodes.length;
}

/** Returns the share of a node that has ended, from 0 to 1. */
export function partOver({ state, counts }: RunNode): number {
  if (OVER.includes(state)) return 1;
  const { total, succeeded, failed, cancelled } = counts;
  return total === 0 ? 0 : (succeeded + failed + cancelled) / total;
}
