import { isSluiceError, SluiceError } from "../core/error.js";
import { encodeInput } from "../core/json.js";
import { checkName } from "../core/name.js";
import { checkOptions } from "../core/option.js";
import type { Queryable } from "../core/ports.js";
import { quote } from "../core/quote.js";
import { newestGraph } from "../postgres/workflow/graph.js";
import { startRuns } from "../postgres/workflow/start.js";
import type { Desk } from "../tasks/enqueue.js";
import { idempotencyKeyOf } from "../tasks/prepare.js";
import { checkTx } from "../tasks/tx.js";
import { encodeRunInput } from "../workflow/input.js";
import type { Workflow } from "../workflow/workflow.js";
import { placeRoots } from "./roots.js";

/** What may be said about one run when it is started. */
export interface StartOptions {
  /** A second start under the same key finds the first run instead of making another. */
  readonly idempotencyKey?: string;
  /** The caller's transaction: the run exists if and only if it commits. */
  readonly tx?: Queryable;
}

/** A run, and whether it was found under its idempotency key. */
interface Started {
  readonly id: string;
  readonly existed: boolean;
}

/** Starts a run of a definition. Its graph is declared first, outside of every transaction of the caller's. */
export async function startRun(
  desk: Desk,
  workflow: Workflow,
  input: unknown,
  options: StartOptions,
): Promise<Started> {
  const { key, tx } = checked(options);
  const text = await encodeRunInput(workflow, input, desk.payloadBytesMax);
  const attempt = async (): Promise<Started> => insert(desk, await desk.declarations.workflow(workflow), text, key, tx);
  const started = await attempt().catch((e: unknown) => {
    if (!isSluiceError(e, "unknown_workflow")) throw e;
    // The database has forgotten it. A transaction that failed cannot go on.
    desk.declarations.forget();
    if (tx !== undefined) throw e;
    return attempt();
  });
  if (!started.existed) await placeRoots(desk, started.id, workflow, tx);
  return started;
}

/** Starts a run of the graph that was declared last under a name. What needs code is placed by a worker. */
export async function startNamed(desk: Desk, name: string, input: unknown, options: StartOptions): Promise<Started> {
  const { key, tx } = checked(options);
  const stored = await newestGraph(desk.db, checkName("workflow", name));
  if (stored === null) {
    throw new SluiceError("unknown_workflow", `no workflow ${quote(name)} was ever declared`, {
      details: { workflow: name },
    });
  }
  return insert(desk, stored.id, encodeInput(input, desk.payloadBytesMax), key, tx);
}

function checked(options: StartOptions): { key: string; tx: Queryable | undefined } {
  checkOptions("start", options, ["idempotencyKey", "tx"]);
  return { key: idempotencyKeyOf(options.idempotencyKey), tx: checkTx(options.tx) };
}

async function insert(
  { db, idempotencyMs, payloadBytesMax }: Desk,
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
