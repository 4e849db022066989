import type { Database } from "../database.js";
import { statement } from "../statement.js";
import { dateOf, type TimeText } from "../time.js";

export type RunState = "running" | "paused" | "cancelling" | "succeeded" | "failed" | "cancelled";
export type NodeState = "pending" | "held" | "placing" | "running" | "succeeded" | "failed" | "cancelled" | "skipped";

/** The current state of a run. */
export interface RunStatus {
  readonly id: string;
  /** The workflow's name, or the own name of a handler's fan-out. */
  readonly name: string;
  readonly state: RunState;
  /** Nodes that are not over. */
  readonly open: number;
  readonly createdAt: Date;
  readonly finishedAt: Date | null;
  /** Why it was cancelled. */
  readonly outcome: unknown;
  /** The task whose handler fanned out, else null. */
  readonly parent: string | null;
}

interface RunRow {
  readonly id: string;
  readonly name: string;
  readonly state: RunState;
  readonly open: number;
  readonly created_at: TimeText;
  readonly finished_at: TimeText | null;
  readonly outcome: unknown;
  readonly parent: string | null;
}

const RUN_COLUMNS = ["id", "name", "state", "open", "created_at", "finished_at", "outcome", "parent"] as const;

const runStatement = statement<RunRow>({
  name: "workflow_run",
  text: `select id::text as id, coalesce(name, map_name) as name, state, open::int as open, to_json(created_at) as created_at,
      to_json(finished_at) as finished_at, outcome, parent::text as parent
    from sluice.workflow_status where id = $1`,
  params: ["int8"],
  columns: RUN_COLUMNS,
});

/** The run, or null if it does not exist or its history is not kept. */
export async function inspectRun(db: Database, run: string): Promise<RunStatus | null> {
  const [row] = await db.run(runStatement, [run]);
  return row === undefined ? null : statusOf(row);
}

/** Which runs to list, newest first. */
export interface RunSearch {
  readonly name?: string | undefined;
  readonly state?: RunState | undefined;
  readonly since?: Date | undefined;
  /** The last id of the previous page. */
  readonly before?: string | undefined;
  readonly max: number;
}

const listStatement = statement<RunRow>({
  name: "workflow_runs",
  text: `select id::text as id, coalesce(name, map_name) as name, state, open::int as open, to_json(created_at) as created_at,
      to_json(finished_at) as finished_at, outcome, parent::text as parent
    from sluice.workflow_list($1, $2, $3, $4, least($5::int4, 1000))`,
  params: ["text", "text", "timestamptz", "int8", "int4"],
  columns: RUN_COLUMNS,
});

/** A page of workflow runs, newest first. */
export async function listRuns(db: Database, search: RunSearch): Promise<RunStatus[]> {
  const { name, state, since, before, max } = search;
  const values = [name, state, since, before].map((x) => x ?? null);
  return (await db.run(listStatement, [...values, max])).map(statusOf);
}

const mapsStatement = statement<RunRow>({
  name: "workflow_maps",
  text: `with mine as materialized (select * from sluice.workflow_status where parent = $1)
    select id::text as id, map_name as name, state, open::int as open, to_json(created_at) as created_at,
      to_json(finished_at) as finished_at, outcome, parent::text as parent
    from mine where ($2::text is null or state = $2) and ($3::int8 is null or id < $3) order by mine.id desc limit least($4::int4, 1000)`,
  params: ["int8", "text", "int8", "int4"],
  columns: RUN_COLUMNS,
});

/** A page of the fan-outs of a task's handler, newest first. */
export async function listMaps(
  db: Database,
  task: string,
  { state, before, max }: Pick<RunSearch, "state" | "before" | "max">,
): Promise<RunStatus[]> {
  return (await db.run(mapsStatement, [task, state ?? null, before ?? null, max])).map(statusOf);
}

function statusOf(row: RunRow): RunStatus {
  const { created_at, finished_at, ...rest } = row;
  return { ...rest, createdAt: dateOf(created_at), finishedAt: dateOf(finished_at) };
}

/** The current state of a run's node. total counts its tasks: the items of an each, otherwise one. */
export interface NodeStatus {
  readonly node: number;
  readonly name: string;
  readonly kind: "task" | "each" | "when" | "sleep" | "waitFor";
  readonly type: string | null;
  readonly state: NodeState;
  readonly total: number;
  readonly succeeded: number;
  readonly failed: number;
  readonly cancelled: number;
  /** Tasks that the window let through and that are not over. Without a window: 0 or 1 for a single task, else null. */
  readonly started: number | null;
  readonly window: number | null;
  /** Only for a node of one task. */
  readonly task: string | null;
  /** Why it could not begin, or the outcome of a node without a task. */
  readonly outcome: unknown;
  readonly startedAt: Date | null;
  readonly finishedAt: Date | null;
  /** Why it failed or was cancelled: name, message, code, reason. */
  readonly error: unknown;
  /** For a waitFor: the event's name. */
  readonly event: string | null;
  /** When its sleep, or its wait for an event, ends. */
  readonly until: Date | null;
  /** It has tasks, or will have some, whose type no live worker serves. */
  readonly unserved: boolean;
  /** The error of the last failed attempt of its only task, while that is retried. */
  readonly lastError: unknown;
}

interface NodeRow {
  readonly node: number;
  readonly name: string;
  readonly kind: NodeStatus["kind"];
  readonly type: string | null;
  readonly state: NodeState;
  readonly total: number;
  readonly succeeded: number;
  readonly failed: number;
  readonly cancelled: number;
  readonly started: number | null;
  readonly window_size: number | null;
  readonly task: string | null;
  readonly outcome: unknown;
  readonly started_at: TimeText | null;
  readonly finished_at: TimeText | null;
  readonly error: unknown;
  readonly event: string | null;
  readonly due_at: TimeText | null;
  readonly unserved: boolean;
  readonly last_error: unknown;
}

const nodesStatement = statement<NodeRow>({
  name: "workflow_nodes",
  text: `select node, name, kind::text as kind, type, state, total, succeeded, failed, cancelled, started, window_size, task::text as task, outcome,
      to_json(started_at) as started_at, to_json(finished_at) as finished_at, error, event, to_json(due_at) as due_at, unserved, last_error
    from sluice.workflow_progress where run = $1 order by node`,
  params: ["int8"],
  columns: [
    "node",
    "name",
    "kind",
    "type",
    "state",
    "total",
    "succeeded",
    "failed",
    "cancelled",
    "started",
    "window_size",
    "task",
    "outcome",
    "started_at",
    "finished_at",
    "error",
    "event",
    "due_at",
    "unserved",
    "last_error",
  ],
});

/** The nodes of a run with their counts. The cost does not depend on the number of items. */
export async function inspectNodes(db: Database, run: string): Promise<NodeStatus[]> {
  const rows = await db.run(nodesStatement, [run]);
  return rows.map(({ window_size, last_error, started_at, finished_at, due_at, ...rest }) => ({
    ...rest,
    window: window_size,
    startedAt: dateOf(started_at),
    finishedAt: dateOf(finished_at),
    until: dateOf(due_at),
    lastError: last_error,
  }));
}

const graphStatement = statement<{ graph: unknown }>({
  name: "workflow_graph",
  text: "select g.graph from sluice.workflow_run r join sluice.workflow_graph g on g.id = r.graph where r.id = $1",
  params: ["int8"],
  columns: ["graph"],
});

/** The graph that a run was started with, as plain data; null if there is no such run or it has no graph. */
export async function inspectGraph(db: Database, run: string): Promise<unknown> {
  const [row] = await db.run(graphStatement, [run]);
  return row?.graph ?? null;
}

const resultStatement = statement<{ result: string | null }>({
  name: "workflow_result",
  text: "select sluice.workflow_result($1, $2) as result",
  params: ["int8", "int4"],
  columns: ["result"],
});

/**
 * The result of a run, as JSON text: what its definition returns, or the outputs of the nodes that no node comes after.
 */
export async function runResult(db: Database, run: string, bytesMax: number): Promise<string> {
  return (await db.one(resultStatement, [run, bytesMax])).result ?? "null";
}
