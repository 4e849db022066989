import type { Limit, Slots } from "../core/limit.js";
import type { TaskTerms } from "../core/terms.js";
import type { Database } from "./database.js";
import { statement } from "./statement.js";

/** Stands for "no limit" in the database, where null means "no such part". */
export const UNLIMITED = 2_147_483_647;

const declareLimitStatement = statement<{ id: number }>({
  name: "declare_limit",
  text: "select sluice.declare_limit($1, $2, $3, $4, $5) as id",
  params: ["text", "int4", "int4", "bool", "bool"],
  columns: ["id"],
});

const declareTermsStatement = statement<{ stream: number }>({
  name: "declare_contract",
  text: `select sluice.declare_contract($1, $2, $3, $4, $5, $6, $7, $8::text::int[], $9, $10) as stream`,
  params: ["text", "text", "int4", "int4", "bool", "text", "bool", "text", "int4", "bool"],
  columns: ["stream"],
});

const declareUseStatement = statement<{ declare_use: string }>({
  name: "declare_use",
  text: "select sluice.declare_use($1, array[$2::int])",
  params: ["int4", "int4"],
  columns: ["declare_use"],
});

/** Options of a limit's declaration. */
export interface DeclareLimitOptions {
  /** Put the declared numbers into force. */
  readonly sync?: boolean;
  /** Declared for an enqueue, so it is removed after it has been unused for long. */
  readonly transient?: boolean;
}

/** Declares a limit. Returns its id. */
export async function declareLimit(
  db: Database,
  limit: Pick<Limit, "name" | "total" | "perKey">,
  { sync = false, transient = false }: DeclareLimitOptions,
): Promise<number> {
  const values = [limit.name, slots(limit.total), slots(limit.perKey), sync, transient];
  const row = await db.one(declareLimitStatement, values, db.aside);
  return row.id;
}

/** Declares a type; limitIds is null if code decides its limits. Returns its stream. */
export async function declareTerms(
  db: Database,
  terms: TaskTerms,
  limitIds: readonly number[] | null,
  sync: boolean,
): Promise<number> {
  const values = [
    terms.type,
    terms.queue,
    terms.priority,
    terms.attempts,
    terms.ordered,
    terms.orderScope,
    terms.orderBlocks,
    limitIds === null ? null : `{${limitIds.join(",")}}`,
    terms.concurrency,
    sync,
  ];
  const row = await db.one(declareTermsStatement, values, db.aside);
  return row.stream;
}

/** Records that tasks of a stream may pass a limit chosen in code. */
export async function declareUse(db: Database, stream: number, limitId: number): Promise<void> {
  await db.run(declareUseStatement, [stream, limitId], db.aside);
}

function slots(n: Slots | undefined): number | null {
  return n === undefined ? null : (n ?? UNLIMITED);
}
