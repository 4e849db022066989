import { isSluiceError, SluiceError } from "../core/error.js";
import { encodeInput } from "../core/json.js";
import { checkName } from "../core/name.js";
import { checkOptions } from "../core/option.js";
import type { Queryable } from "../core/ports.js";
import { quote } from "../core/quote.js";
import type { TaskTerms } from "../core/terms.js";
import { inTransaction } from "../postgres/transaction.js";
import { newestGraph } from "../postgres/workflow/graph.js";
import { misplaced, placed, placeTasks, type PlacedBatch, type Unplaced } from "../postgres/workflow/place.js";
import { startRuns } from "../postgres/workflow/start.js";
import { lockUnplaced, unplacedOf } from "../postgres/workflow/unplaced.js";
import type { EnqueueServices } from "../tasks/enqueue.js";
import { idempotencyKeyOf } from "../tasks/prepare.js";
import { checkTx } from "../tasks/tx.js";
import { encodeRunInput } from "../workflow/input.js";
import type { Workflow } from "../workflow/workflow.js";
import { faultOf, NotWanted, notWanted, preparePiece, renderPiece } from "./place.js";

// A worker places larger nodes: a start must not take long.
const ROOT_ITEMS_MAX = 1_000;

/** Options for starting one run. */
export interface StartOptions {
  /** A second start with the same key returns the first run instead of creating another. */
  readonly idempotencyKey?: string;
  /** The caller's transaction: the run exists if and only if it commits. */
  readonly tx?: Queryable;
}

/** A run, and whether it was found under its idempotency key. */
interface Started {
  readonly id: string;
  readonly existed: boolean;
}

/** Starts a run of a definition. Declares its graph first, outside of the caller's transaction. */
export async function startRun(
  services: EnqueueServices,
  workflow: Workflow,
  input: unknown,
  options: StartOptions,
): Promise<Started> {
  const { key, tx } = checked(options);
  const text = await encodeRunInput(workflow, input, services.payloadBytesMax);
  const attempt = async (): Promise<Started> =>
    insert(services, await services.declarations.workflow(workflow), text, key, tx);
  const started = await attempt().catch((e: unknown) => {
    if (!isSluiceError(e, "unknown_workflow")) throw e;
    // The database no longer has the graph. A failed transaction cannot continue.
    services.declarations.forget();
    if (tx !== undefined) throw e;
    return attempt();
  });
  if (!started.existed) await placeRoots(services, started.id, workflow, tx);
  return started;
}

/** Starts a run of the latest graph declared under a name. A worker places the nodes that need code. */
export async function startNamed(
  services: EnqueueServices,
  name: string,
  input: unknown,
  options: StartOptions,
): Promise<Started> {
  const { key, tx } = checked(options);
  const stored = await newestGraph(services.db, checkName("workflow", name));
  if (stored === null) {
    throw new SluiceError("unknown_workflow", `no workflow named ${quote(name)} was ever declared`, {
      details: { workflow: name },
    });
  }
  return insert(services, stored.id, encodeInput(input, services.payloadBytesMax), key, tx);
}

function checked(options: StartOptions): { key: string; tx: Queryable | undefined } {
  checkOptions("start", options, ["idempotencyKey", "tx"]);
  return { key: idempotencyKeyOf(options.idempotencyKey), tx: checkTx(options.tx) };
}

async function insert(
  { db, idempotencyMs, payloadBytesMax }: EnqueueServices,
  graph: number,
  input: string,
  key: string,
  tx: Queryable | undefined,
): Promise<Started> {
  const idempotency = key === "" ? null : [key];
  const starts = { graph, inputs: [input], idempotency, idempotencyMs };
  const { ids, existed } = await startRuns(db, { ...starts, inputBytesMax: payloadBytesMax }, tx);
  return { id: ids[0]!, existed: existed?.[0] ?? false };
}

/**
 * Places the root nodes of a new run that only code can place. This happens in the caller's transaction, if there is
 * one. Otherwise it happens in separate transactions after the start, so that no connection is held while limits are
 * declared. The run exists by then: a worker places the nodes that cannot be placed now, and the start does not fail
 * because of them.
 */
async function placeRoots(
  services: EnqueueServices,
  run: string,
  workflow: Workflow,
  tx: Queryable | undefined,
): Promise<void> {
  const inCode = workflow.contracts.filter(needsCode) as TaskTerms<never>[];
  if (inCode.length === 0) return;
  if (tx !== undefined) return placeAll(services, run, inCode, tx);
  await placeAll(services, run, inCode).catch(async () => {
    // A limit declared by this process may have been removed.
    services.declarations.forget();
    await placeAll(services, run, inCode).catch(() => {});
  });
}

async function placeAll(
  services: EnqueueServices,
  run: string,
  inCode: readonly TaskTerms<never>[],
  tx?: Queryable,
): Promise<void> {
  const terms = new Map<number, TaskTerms<never>>();
  for (const one of inCode) terms.set(await services.declarations.stream(one), one);
  for (const node of await unplacedOf(services.db, run, tx)) {
    const its = terms.get(node.stream);
    if (its !== undefined && node.total <= ROOT_ITEMS_MAX) await placeRoot(services, node, its, tx);
  }
}

/** Returns whether only code can decide the order key and limits of a task of this type. */
function needsCode({ ordered, limitList }: TaskTerms): boolean {
  return ordered || limitList === null || limitList.some(({ limit }) => limit.perKey !== undefined);
}

async function placeRoot(
  services: EnqueueServices,
  node: Unplaced,
  terms: TaskTerms<never>,
  tx: Queryable | undefined,
): Promise<void> {
  // If the database refuses to render an input, the caller's transaction is aborted, so the caller gets the error.
  const texts = await renderPiece(services, node, { from: 0, max: ROOT_ITEMS_MAX }, tx);
  let batches: PlacedBatch[];
  try {
    batches = await preparePiece(services, node, terms, texts, 0);
  } catch (e) {
    const fault = faultOf(e);
    if (fault === null) throw e;
    await misplaced(services.db, node, fault, tx);
    return;
  }
  const place = async (on: Queryable): Promise<void> => {
    if (!(await lockUnplaced(services.db, node, tx === undefined, on))) return;
    for (const batch of batches) await placeTasks(services.db, node, batch, on);
    if (!(await placed(services.db, node, on))) throw new NotWanted();
  };
  if (tx !== undefined) return place(tx);
  await inTransaction(services.db, place).catch((e: unknown) => {
    if (!notWanted(e)) throw e;
  });
}
