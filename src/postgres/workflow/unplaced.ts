import type { Queryable } from "../../core/ports.js";
import type { Database } from "../database.js";
import { statement } from "../statement.js";
import type { Unplaced } from "./place.js";

const ofRunStatement = statement<Unplaced>({
  name: "workflow_unplaced",
  text: `select u.run::text as run, u.node, u.stream, n.total, -s.rank as priority, s.attempts::int as attempts
    from sluice.workflow_unplaced u join sluice.workflow_run r on r.id = u.run
    join sluice.workflow_node n on n.run = u.run and n.node = u.node join sluice.workflow_step s on s.graph = r.graph and s.node = u.node
    where u.run = $1 and u.in_code and n.state = 'u' order by u.node`,
  params: ["int8"],
  columns: ["run", "node", "stream", "total", "priority", "attempts"],
});

/** The nodes of one run that code is to place. Nobody's hand is on them yet. */
export function unplacedOf(db: Database, run: string, tx?: Queryable): Promise<Unplaced[]> {
  return db.run(ofRunStatement, [run], tx);
}

const lockStatement = statement<{ node: number }>({
  name: "workflow_lock_unplaced",
  text: "select node from sluice.workflow_unplaced where run = $1 and node = $2 for update skip locked",
  params: ["int8", "int2"],
  columns: ["node"],
});

/** Takes a node in hand until the transaction ends. False if another has it, or has placed it. */
export async function lockUnplaced(
  db: Database,
  { run, node }: Pick<Unplaced, "run" | "node">,
  tx: Queryable,
): Promise<boolean> {
  return (await db.run(lockStatement, [run, node], tx)).length > 0;
}
