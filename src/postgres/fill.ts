import type { Database } from "./database.js";
import { statement } from "./statement.js";

const fillLimitStatement = statement<{ fill_limit: string }>({
  name: "fill_limit",
  text: "select sluice.fill_limit($1, $2)",
  params: ["int4", "int4"],
  columns: ["fill_limit"],
});

/** Sets a limit's total if neither the code nor an operator has set one. */
export async function fillLimit(db: Database, limitId: number, total: number): Promise<void> {
  await db.run(fillLimitStatement, [limitId, total], db.aside);
}
