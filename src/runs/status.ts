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
  /** Of what was cancelled: the reason that was given. */
  readonly message: string;
  /** Of what was cancelled: `task_cancelled`. */
  readonly code: string | null;
}

/** One node of a run. */
export interface RunNode {
  readonly name: string;
  readonly kind: "task" | "each" | "when" | "sleep" | "waitFor";
  /** Of its tasks. */
  readonly type: string | null;
  readonly state: NodeState;
  /** How many tasks it has, items of an each or one, and how many of them have ended how. */
  readonly counts: Readonly<Record<"total" | "succeeded" | "failed" | "cancelled", number>>;
  /**
   * Tasks that its window has let through and that are not over, also while a total of their own is full; of a node of
   * one task whether that runs. Null if it has several and no window.
   */
  readonly started: number | null;
  /** All others that are not over. Null as above. */
  readonly waiting: number | null;
  readonly window: number | null;
  /** Of a node of one task: its id. */
  readonly task: string | null;
  readonly startedAt: Date | null;
  readonly finishedAt: Date | null;
  /** Why it failed or was cancelled, also if a branch has caught that; of an each `items` tells of every item. */
  readonly error: RunError | null;
  /** Of a waitFor: the name of its event. */
  readonly event: string | null;
  /** While it sleeps, or waits for its event with a timeout: until when. */
  readonly until: Date | null;
  /** It has tasks, or they are to be placed, and no live worker serves their type. */
  readonly unserved: boolean;
}

/** A run in a list. */
export interface RunSummary {
  readonly id: string;
  readonly workflow: string;
  readonly state: RunState;
  readonly createdAt: Date;
  readonly finishedAt: Date | null;
  /** Why it was cancelled, if that was said. */
  readonly reason: string | null;
}

/** A run as it stands. */
export interface RunStatus extends RunSummary {
  /** From 0 to 1: the part of its nodes that is over, with the items of an each counted in. */
  readonly progress: number;
  readonly nodes: readonly RunNode[];
}

const OPEN: readonly NodeState[] = ["running", "placing", "held"];
const OVER: readonly NodeState[] = ["succeeded", "failed", "cancelled", "skipped"];

/** The run and its nodes, or null if there is none. The run first: a run that is over has no open node then. */
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
  const open = OPEN.includes(state) ? total - succeeded - failed - cancelled : 0;
  const waiting = started === null ? null : open - started;
  const tasks = { counts, started, waiting, window, task, unserved };
  return { name, kind, type, state, ...tasks, startedAt, finishedAt, error, event, until };
}

/** What is told of the error that was kept with a node or an item. */
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

/** How much of a node is over, from 0 to 1. */
export function partOver({ state, counts }: RunNode): number {
  if (OVER.includes(state)) return 1;
  const { total, succeeded, failed, cancelled } = counts;
  return total === 0 ? 0 : (succeeded + failed + cancelled) / total;
}
