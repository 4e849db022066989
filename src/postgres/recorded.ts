import type { TaskState } from "../core/state.js";
import type { Connection } from "./connection.js";
import { statement } from "./statement.js";

/** The state of a task after its outcome was recorded. */
export interface RecordedState {
  readonly state: TaskState;
  /** Attempts used. */
  readonly attempt: number;
}

const recordedStatement = statement<RecordedState & { readonly id: string }>({
  name: "recorded",
  text: `select t.id::text as id, t.state, t.attempt
    from unnest($1::text::bigint[]) u(id) cross join lateral sluice.task_by_id(u.id) t`,
  params: ["text"],
  columns: ["id", "state", "attempt"],
});

/** The states of these tasks, by id. A task whose history is not kept is absent. */
export async function recordedStates(
  connection: Connection,
  ids: readonly string[],
): Promise<ReadonlyMap<string, RecordedState>> {
  const rows = await connection.run(recordedStatement, [`{${ids.join(",")}}`]);
  return new Map(rows.map(({ id, state, attempt }) => [id, { state, attempt }]));
}
