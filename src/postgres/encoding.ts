import { SluiceError } from "../core/error.js";
import type { Queryable } from "../core/ports.js";
import type { Database } from "./database.js";
import { statement } from "./statement.js";

const encodingStatement = statement<{ encoding: string }>({
  name: "encoding",
  text: "select current_setting('server_encoding') as encoding",
  params: [],
  columns: ["encoding"],
});

/** Rejects a database that cannot store every text: a task's input, result or error may contain any character. */
export async function checkEncoding(db: Database, on: Queryable): Promise<void> {
  const { encoding } = await db.one(encodingStatement, [], on);
  if (encoding === "UTF8") return;
  throw new SluiceError(
    "encoding_unsupported",
    `Sluice needs a database with encoding UTF8, not ${encoding}: ` +
      "create one with encoding 'UTF8' and template template0",
    { details: { encoding } },
  );
}
