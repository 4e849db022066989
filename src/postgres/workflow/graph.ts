import type { Database } from "../database.js";
import { statement } from "../statement.js";

/** A graph as it was declared. */
interface StoredGraph {
  /** By which runs are started. */
  readonly id: number;
  readonly graph: unknown;
}

const newestStatement = statement<StoredGraph>({
  name: "workflow_newest",
  text: "select id, graph from sluice.workflow_graph where name = $1 order by id desc limit 1",
  params: ["text"],
  columns: ["id", "graph"],
});

/** The graph that was declared last under this name, or null. */
export async function newestGraph(db: Database, name: string): Promise<StoredGraph | null> {
  return (await db.run(newestStatement, [name]))[0] ?? null;
}
