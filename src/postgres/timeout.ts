import type { Connection } from "./connection.js";
import { statement } from "./statement.js";

const timeoutStatement = statement<{ ms: number }>({
  name: "statement_timeout",
  text: "select setting::int as ms from pg_settings where name = 'statement_timeout'",
  params: [],
  columns: ["ms"],
});

/** How long a statement of ours may take before the server stops it; null for no limit. */
export async function statementTimeoutMs(connection: Connection): Promise<number | null> {
  const [row] = await connection.run(timeoutStatement, []);
  return row === undefined || row.ms === 0 ? null : row.ms;
}
