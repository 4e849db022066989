import { isSluiceError, SluiceError, type ErrorCode } from "../core/error.js";
import { describeError } from "../core/json.js";
import { listTexts } from "../core/jsonlist.js";
import type { Queryable } from "../core/ports.js";
import type { TaskTerms } from "../core/terms.js";
import type { Database } from "../postgres/database.js";
import type { Lender } from "../postgres/transaction.js";
import { placed, placeTasks, renderInputs, type PlacedBatch, type Unplaced } from "../postgres/workflow/place.js";
import { batchOf } from "../tasks/batch.js";
import type { Declarations } from "../tasks/declarations.js";
import { sameLimits, type Prepared } from "../tasks/prepare.js";

/** The dependencies of placing. */
interface PlaceServices {
  readonly db: Database;
  readonly declarations: Declarations;
}

/**
 * The additional dependencies of the Placer: the types that this process has code for, and connections that no claim
 * uses.
 */
export interface PlaceCrew extends PlaceServices {
  readonly pool: Lender;
  /** By stream. */
  readonly terms: ReadonlyMap<number, TaskTerms<never>>;
  /** The worker in whose process the user's code runs, if any: its claimed tasks are not blamed for a crash. */
  readonly worker?: () => string | null;
  /** Called when a node is put off because of this error. */
  readonly onPutOff?: (e: unknown) => void;
}

interface Piece {
  readonly from: number;
  readonly max: number;
}

const PIECE_ITEMS_MIN = 100;
const PIECE_ITEMS_MAX = 5_000;
const PIECE_BYTES = 8 * 1024 * 1024;
// Checking may wait for the user's own asynchronous code; the server ends a transaction that is idle for long.
const PIECE_MS = 5_000;
// The maximum time to check one input: meanwhile its node is locked and a connection is in use.
const CHECK_MS_MAX = 3_000;

/**
 * Creates all tasks of a node that only code can place: the database renders the inputs, and this process checks them,
 * resolves their keys and inserts them piece by piece. The caller has locked the node's row in this transaction and
 * commits it, or rolls back if this throws. There are three kinds of errors: the tasks are no longer wanted
 * (`notWanted`), the node itself is at fault (`faultOf`; then call `misplaced`), or the next try may succeed.
 */
export async function placeNode(
  services: PlaceServices,
  node: Unplaced,
  terms: TaskTerms<never>,
  tx: Queryable,
): Promise<void> {
  let max = PIECE_ITEMS_MIN;
  for (let from = 0; from < node.total;) {
    const texts = await renderPiece(services, node, { from, max }, tx);
    const began = performance.now();
    const batches = await preparePiece(services, node, terms, texts, from);
    max = nextMax(texts, performance.now() - began);
    for (const batch of batches) await placeTasks(services.db, node, batch, tx);
    from += texts.length;
  }
  if (!(await placed(services.db, node, tx))) throw new NotWanted();
}

/** Rendered inputs must fit into memory and be checked in time, but every piece costs a scan of the whole list. */
function nextMax(texts: readonly string[], ms: number): number {
  const bytes = texts.reduce((sum, text) => sum + text.length, 0) / texts.length;
  const fit = Math.min(PIECE_BYTES / bytes, (PIECE_MS * texts.length) / Math.max(ms, 1));
  return Math.max(1, Math.min(PIECE_ITEMS_MAX, Math.floor(fit)));
}

/** The run was cancelled or paused meanwhile: the placed tasks are rolled back. */
export class NotWanted extends Error {}

/** Returns whether placing failed because the run was cancelled or paused meanwhile. */
export function notWanted(e: unknown): boolean {
  return e instanceof NotWanted || isSluiceError(e, "workflow_over");
}

/** Returns the rendered inputs of some of a node's tasks, as JSON texts. */
export async function renderPiece(
  { db }: PlaceServices,
  node: Unplaced,
  piece: Piece,
  tx?: Queryable,
): Promise<string[]> {
  return listTexts(await renderInputs(db, node, piece, tx));
}

/**
 * Returns checked tasks with these inputs, from item `from` on, ready to be inserted. Declares limits outside of every
 * transaction.
 */
export async function preparePiece(
  services: PlaceServices,
  node: Unplaced,
  terms: TaskTerms<never>,
  texts: readonly string[],
  from: number,
): Promise<PlacedBatch[]> {
  if (texts.length === 0) throw new SluiceError("invalid_workflow", "the items no longer exist");
  const items: Prepared[] = [];
  for (const [i, text] of texts.entries()) items.push(await prepareText(terms, text, node, from + i));
  return batchesOf(services, node, terms, items, from);
}

/** Groups prepared tasks into statements, in the order of the items, whose first index is `from`. */
export async function batchesOf(
  services: PlaceServices,
  node: Pick<Unplaced, "stream" | "priority" | "attempts">,
  terms: TaskTerms<never>,
  items: readonly Prepared[],
  from: number,
): Promise<PlacedBatch[]> {
  const { stream } = node;
  const common = { stream, priority: node.priority ?? terms.priority, attempts: node.attempts ?? terms.attempts };
  const batches: PlacedBatch[] = [];
  for (const alike of neighbours(items)) {
    batches.push({ from, ...(await batchOf(services.declarations, terms, alike, common)) });
    from += alike.length;
  }
  return batches;
}

/** Groups adjacent items with the same limits. */
function neighbours(items: readonly Prepared[]): Prepared[][] {
  const groups: Prepared[][] = [];
  for (const item of items) {
    const group = groups.at(-1);
    if (group !== undefined && sameLimits(group[0]!, item)) group.push(item);
    else groups.push([item]);
  }
  return groups;
}

/** Like `prepare` for enqueue, but keeps the text as it was rendered. */
export async function prepareText(
  terms: TaskTerms<never>,
  text: string,
  node: Pick<Unplaced, "total"> = { total: 1 },
  item = 0,
): Promise<Prepared> {
  try {
    const parsed: unknown = await inTime(terms.parse(JSON.parse(text)));
    return { input: text, ...terms.place(parsed) };
  } catch (e) {
    if (!isSluiceError(e) || node.total === 1) throw e;
    throw new SluiceError(e.code, `${e.message} (item ${item})`, {
      cause: e,
      details: { ...e.details, item },
    });
  }
}

/** Returns the result of an asynchronous schema, or throws if it takes too long. */
async function inTime<T>(answer: T | Promise<T>): Promise<T> {
  if (!(answer instanceof Promise)) return answer;
  let timer: NodeJS.Timeout | undefined;
  // guard: a schema that never answers is given up -> test/runs/placer.test.ts: "a node whose schema never answers is postponed and counted, and other nodes are placed meanwhile"
  const late = new Promise<never>((_, reject) => {
    // Reads a result that arrived while the event loop was busy first.
    timer = setTimeout(() => setImmediate(() => reject(noAnswer())), CHECK_MS_MAX);
  });
  try {
    return await Promise.race([answer, /* guard:deadline */ late /* end */]);
  } finally {
    clearTimeout(timer);
  }
}

function noAnswer(): SluiceError {
  return new SluiceError(
    "timeout",
    `the schema did not finish within ${CHECK_MS_MAX} ms: its node is locked meanwhile, so keep validation short`,
  );
}

const FAULTS: readonly ErrorCode[] = [
  "input_invalid",
  "input_not_storable",
  "input_too_large",
  "invalid_key",
  "invalid_name",
  "invalid_option",
  "invalid_workflow",
  "key_missing",
  "limit_shape",
  "duplicate_limit",
  "result_truncated",
];

/**
 * Returns the error of a node that cannot be placed, as JSON text, if every try would fail; otherwise null. Data
 * exceptions and server limits count as the node's fault too.
 */
export function faultOf(e: unknown): string | null {
  const state = (e as { code?: unknown } | null)?.code;
  const ours = isSluiceError(e) && FAULTS.includes(e.code);
  const theirs = !isSluiceError(e) && typeof state === "string" && /^(22|54)\w{3}$/.test(state);
  if (!ours && !theirs) return null;
  const { name, message, code } = describeError(e);
  return JSON.stringify({ name, message, ...(theirs ? { code: "input_not_storable" } : { code }) });
}
