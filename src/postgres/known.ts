import { isSluiceError, SluiceError } from "../core/error.js";
import { quote } from "../core/quote.js";
import type { Database } from "./database.js";
import { statement, type Statement } from "./statement.js";

// What exists, for the errors about names that do not.

const NAMES_MAX = 20;

interface Row {
  readonly name: string;
}

const queuesStatement = statement<Row>({
  name: "known_queues",
  text: "select name from sluice.queue order by name limit $1",
  params: ["int8"],
  columns: ["name"],
});

// Limits of the code first: there may be thousands of groups.
const limitsStatement = statement<Row>({
  name: "known_limits",
  text: "select name from sluice.limits order by transient, name limit $1",
  params: ["int8"],
  columns: ["name"],
});

const known: Readonly<Record<"queue" | "limit", Statement<Row>>> = { queue: queuesStatement, limit: limitsStatement };

/** Awaits `work`. An error that there is no such queue or limit lists the names that exist. */
export async function namingOthers<T>(
  db: Database,
  kind: "queue" | "limit",
  name: string,
  work: Promise<T>,
): Promise<T> {
  try {
    return await work;
  } catch (e) {
    throw isSluiceError(e, `unknown_${kind}`) ? await unknownName(db, kind, name, e) : e;
  }
}

/** Returns the error for a name that does not exist, with the names that do. */
export async function unknownName(
  db: Database,
  kind: "queue" | "limit",
  name: string,
  cause?: unknown,
): Promise<SluiceError> {
  return new SluiceError(`unknown_${kind}`, `there is no ${kind} named ${quote(name)}${await others(db, kind)}`, {
    details: { [kind]: name },
    ...(cause === undefined ? {} : { cause }),
  });
}

async function others(db: Database, kind: "queue" | "limit"): Promise<string> {
  // Best effort: a role that may not read the names still gets the error.
  const rows = await db.run(known[kind], [NAMES_MAX + 1]).catch(() => null);
  if (rows === null) return "";
  if (rows.length === 0) return "; there are none yet";
  const names = rows.slice(0, NAMES_MAX).map((row) => quote(row.name));
  return `; there are ${names.join(", ")}${rows.length > NAMES_MAX ? " and more" : ""}`;
}
