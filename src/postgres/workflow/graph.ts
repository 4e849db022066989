import type { Database } from "../database.js";
import type { Connection } from "../connection.js";
import { statement } from "../statement.js";
import { dateOf, type TimeText } from "../time.js";

/** A graph as it was declared. */
interface StoredGraph {
  /** The number by which runs are started. */
  readonly id: number;
  readonly graph: unknown;
}

const newestStatement = statement<StoredGraph>({
  name: "workflow_newest",
  text: "select id, graph from sluice.workflow_graph where name = $1 order by declared desc limit 1",
  params: ["text"],
  columns: ["id", "graph"],
});

/** The graph that was last declared under this name, or null. */
export async function newestGraph(db: Database, name: string): Promise<StoredGraph | null> {
  return (await db.run(newestStatement, [name]))[0] ?? null;
}

/** The current state of a declared workflow. */
export interface WorkflowSummary {
  readonly name: string;
  /** Number of nodes in the graph that a start by name uses. */
  readonly nodes: number;
  /** When this graph was declared. */
  readonly createdAt: Date;
  /** Runs that are not over, across all graphs of this name. */
  readonly live: number;
}

interface WorkflowRow extends Omit<WorkflowSummary, "createdAt"> {
  readonly created_at: TimeText;
}

const workflowsStatement = statement<WorkflowRow>({
  name: "workflows",
  text: `with live as materialized (select graph, count(*)::int as n from sluice.workflow_status where finished_at is null and graph is not null group by graph),
    newest as materialized (
      select distinct on (g.name) g.id, coalesce(sum(l.n) over (partition by g.name), 0)::int as live
      from sluice.workflow_graph g left join live l on l.graph = g.id order by g.name, g.declared desc)
    select g.name, json_array_length(g.graph -> 'nodes') as nodes, to_json(g.created_at) as created_at, n.live
    from newest n join sluice.workflow_graph g on g.id = n.id order by g.name`,
  params: [],
  columns: ["name", "nodes", "created_at", "live"],
});

/** Every declared workflow, by name. */
export async function listWorkflows(db: Database): Promise<WorkflowSummary[]> {
  const rows = await db.run(workflowsStatement, []);
  return rows.map(({ created_at, ...rest }) => ({ ...rest, createdAt: dateOf(created_at) }));
}

const pruneStatement = statement<{ pruned: number }>({
  name: "workflow_prune_graphs",
  text: "select sluice.workflow_prune_graphs($1, $2) as pruned",
  params: ["int8", "int4"],
  columns: ["pruned"],
});

// Processes of an older release may still start a graph that is no longer the newest. A deploy is over by then.
const OLDER_MS = 7 * 24 * 3_600_000;
const PRUNE_MAX = 100;

/**
 * Deletes graphs older than a week that no run refers to, but never the newest of a name. At most a hundred per call.
 */
export async function pruneGraphs(connection: Connection): Promise<void> {
  await connection.run(pruneStatement, [OLDER_MS, PRUNE_MAX]);
}
