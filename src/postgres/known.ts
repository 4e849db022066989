import { isSluiceError, SluiceError } from "../core/error.js";
import { didYouMean } from "../core/near.js";
import { quote } from "../core/quote.js";
import type { Database } from "./database.js";
import { statement, type Statement } from "./statement.js";

// What exists, for the errors about names that do not.

const NAMES_MAX = 20;
/** Names among which a similar one is searched. */
const NEAR_MAX = 1_000;

type Kind = "queue" | "limit" | "schedule";

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

const schedulesStatement = statement<Row>({
  name: "known_schedules",
  text: "select name from sluice.schedule_status order by name limit $1",
  params: ["int8"],
  columns: ["name"],
});

const known: Readonly<Record<Kind, Statement<Row>>> = {
  queue: queuesStatement,
  limit: limitsStatement,
  schedule: schedulesStatement,
};

/** Awaits `work`. An error that there is no such queue or limit lists the names that exist. */
export async function namingOthers<T>(db: Database, kind: Kind, name: string, work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (e) {
    throw isSluiceError(e, `unknown_${kind}`) ? await unknownName(db, kind, name, e) : e;
  }
}

/** Returns the error for a name that does not exist, with the names that do. */
export async function unknownName(db: Database, kind: Kind, name: string, cause?: unknown): Promise<SluiceError> {
  return new SluiceError(`unknown_${kind}`, `there is no ${kind} named ${quote(name)}${await others(db, kind, name)}`, {
    details: { [kind]: name },
    ...(cause === undefined ? {} : { cause }),
  });
}

async function others(db: Database, kind: Kind, name: string): Promise<string> {
  // Best effort: a role that may not read the names still gets the error.
  const rows = await db.run(known[kind], [NEAR_MAX]).catch(() => null);
  if (rows === null) return "";
  if (rows.length === 0) return "; there are none yet";
  const names = rows.slice(0, NAMES_MAX).map((row) => quote(row.name));
  const near = didYouMean(
    name,
    rows.map((row) => row.name),
  );
  return `; there are ${names.join(", ")}${rows.length > NAMES_MAX ? " and more" : ""}${near}`;
}
