import type { Claim } from "../core/claim.js";
import type { Queryable } from "../core/ports.js";
import type { Database } from "./database.js";
import type { Connection } from "./connection.js";
import { statement } from "./statement.js";

/**
 * Any outcome but success. outcome: JSON text of the error or reason, '' for none.
 * wait: the task sleeps until one of the runs listed in its outcome has ended, without slots and without using up an
 * attempt.
 * invalid: the input does not fit the schema. That counts as a retry, but fails the task if a workflow rendered the
 * input.
 */
export interface Settlement {
  readonly claim: Claim;
  readonly kind: "retry" | "fail" | "cancel" | "snooze" | "release" | "wait" | "invalid";
  readonly delayMs: number;
  readonly outcome: string;
}

const RECORD = "\u001e";

const settleStatement = statement<{ settled: string | null }>({
  name: "settle",
  text: `select sluice.settle($1, $2::text::bigint[], $3::text::bigint[], $4::text::sluice.settlement[], $5::text::bigint[], $6)::text as settled`,
  params: ["int8", "text", "text", "text", "text", "text"],
  columns: ["settled"],
});

const settleInTransactionStatement = statement<{ settled: boolean }>({
  name: "settle_in_transaction",
  text: "select sluice.settle_in_transaction($1, $2, $3, $4, $5) as settled",
  params: ["int8", "int8", "int8", "text", "bool"],
  columns: ["settled"],
});

/** Records outcomes. Returns the ids of the tasks whose outcomes were recorded; the others were no longer ours. */
export async function settle(
  connection: Connection,
  worker: string,
  items: readonly Settlement[],
): Promise<readonly string[]> {
  const list = (of: (s: Settlement) => string | number): string => `{${items.map(of).join(",")}}`;
  const [row] = await connection.run(settleStatement, [
    worker,
    list((s) => s.claim.id),
    list((s) => s.claim.token),
    list((s) => s.kind),
    list((s) => Math.round(s.delayMs)),
    items.map((s) => s.outcome).join(RECORD),
  ]);
  const settled = row?.settled ?? null;
  return settled === null ? [] : settled.slice(1, -1).split(",");
}

/**
 * Completes a task inside a transaction, whose commit is the completion. Throws `lease_lost` if the task is not ours.
 */
export async function settleInTransaction(
  db: Database,
  tx: Queryable,
  call: {
    readonly worker: string;
    readonly claim: Claim;
    readonly result: string;
    readonly keepHistory: boolean;
  },
): Promise<void> {
  const { worker, claim, result, keepHistory } = call;
  await db.run(
    settleInTransactionStatement,
    [worker, claim.id, claim.token, result === "" ? null : result, keepHistory],
    tx,
  );
}
