import type { Connection } from "./connection.js";
import { statement } from "./statement.js";

const timeoutStatement = statement<{ ms: number }>({
  name: "statement_timeout",
  text: "select setting::int as ms from pg_settings where name = 'statement_timeout'",
  params: [],
  columns: ["ms"],
});

/** How long the server lets a statement of ours run before it cancels it, in ms; null for no limit. */
export async function statementTimeoutMs(connection: Connection): Promise<number | null> {
  const [row] = await connection.run(timeoutStatement, []);
  return row === undefined || row.ms === 0 ? null : row.ms;
}
