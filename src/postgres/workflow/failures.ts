import type { Database } from "../database.js";
import { statement } from "../statement.js";

/** A node that failed or was cancelled, and why. */
export interface NodeFailure {
  readonly node: string;
  readonly state: "failed" | "cancelled";
  /** Of an each: the first item that did not succeed. */
  readonly item: number | null;
  /** What is kept of the error, or of the reason of a cancellation. */
  readonly error: unknown;
  /** A branch that recovers has caught it. */
  readonly recovered: boolean;
}

const failuresStatement = statement<NodeFailure>({
  name: "workflow_failures",
  text: `select coalesce(s.name, r.name) as node, case n.state when 'f' then 'failed' else 'cancelled' end as state, i.item, coalesce(n.outcome, i.outcome) as error,
      exists (select from sluice.workflow_step k cross join lateral unnest(k.deps, k.dep_on, k.dep_recovers) d(node, dep_on, recovers)
        join sluice.workflow_node x on x.run = r.id and x.node = k.node and x.state = 's'
        where k.graph = r.graph and d.node = n.node and d.dep_on = 'f' and d.recovers) as recovered
    from sluice.workflow_run r join sluice.workflow_node n on n.run = r.id and n.state in ('f', 'c')
    left join sluice.workflow_step s on s.graph = r.graph and s.node = n.node
    left join lateral (select case when n.kind = 'e' then w.item end as item, d.outcome from sluice.workflow_task w join sluice.done d on d.id = w.id and d.state in ('f', 'c')
      where w.run = r.id and w.node = n.node order by d.state = 'f' desc, w.item limit 1) i on true
    where r.id = $1 order by recovered, n.state = 'f' desc, n.finished_at, n.node limit $2`,
  params: ["int8", "int4"],
  columns: ["node", "state", "item", "error", "recovered"],
});

/** Why a run did not succeed: its nodes that failed, those first that nothing has caught. */
export function runFailures(db: Database, run: string, max: number): Promise<NodeFailure[]> {
  return db.run(failuresStatement, [run, max]);
}
