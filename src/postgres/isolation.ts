import { SluiceError } from "../core/error.js";
import type { Queryable } from "../core/ports.js";
import type { Database } from "./database.js";
import { statement } from "./statement.js";

const isolationStatement = statement<{ level: string; role: string }>({
  name: "isolation",
  text: "select current_setting('default_transaction_isolation') as level, current_user::text as role",
  params: [],
  columns: ["level", "role"],
});

/** Rejects a database or role whose default isolation level makes our statements fail. */
export async function checkIsolation(db: Database, on: Queryable): Promise<void> {
  const { level, role } = await db.one(isolationStatement, [], on);
  if (level === "read committed") return;
  throw new SluiceError(
    "isolation_level",
    `Sluice needs the isolation level read committed, not ${level}: use a separate role and run ` +
      `alter role "${role}" set default_transaction_isolation = 'read committed'`,
  );
}
