import { createHash, type Hash } from "node:crypto";
import type { Claim } from "../core/claim.js";
import { isSluiceError, SluiceError } from "../core/error.js";
import { encodeInput } from "../core/json.js";
import { CANCELLED_FOR_ANOTHER_ITEM, type MapCollected, type MapError } from "../core/map.js";
import { waits } from "../core/outcome.js";
import type { Queryable } from "../core/ports.js";
import { quote } from "../core/quote.js";
import type { TaskTerms } from "../core/terms.js";
import type { Listener } from "../postgres/listen.js";
import { runResult } from "../postgres/workflow/inspect.js";
import { findMap, markMap, openMap, type FoundMap } from "../postgres/workflow/map.js";
import { placed, placeTasks } from "../postgres/workflow/place.js";
import type { EnqueueServices } from "../tasks/enqueue.js";
import { prepare, type Prepared } from "../tasks/prepare.js";
import { noList, type MapCall } from "./map-call.js";
import { batchesOf } from "./place.js";
import { runOver } from "./wait.js";

/** The execution whose handler calls a map. The map reads it and records its own state there. */
interface MapCaller {
  readonly claim: Claim;
  readonly session: { readonly id: string };
  readonly alone: boolean;
  readonly signal: AbortSignal;
  waitsFor: string[] | null;
  maps: Set<string> | null;
  final: unknown;
}

/** The services of the worker that a map uses for one execution. */
export interface MapServices {
  readonly services: EnqueueServices;
  readonly listener: Listener | null;
  /** Waits for a reply of the database. An unavailable database does not count as a failure of the handler. */
  excusing<T>(asked: Promise<T>): Promise<T>;
  inTransaction<T>(work: (tx: Queryable) => Promise<T>): Promise<T>;
}

const ITEMS_MAX = 1_000_000;
const PIECE_ITEMS_MAX = 1_000;
const PIECE_LENGTH_MAX = 4 * 1024 * 1024;
// Checking may wait for the user's own asynchronous code; the server ends a transaction that is idle for long.
const PIECE_MS_MAX = 5_000;
/** The results of all items must fit into the memory of this process. */
const RESULTS_BYTES_MAX = 64 * 1024 * 1024;
const ERRORS_TOLD_MAX = 20;

/**
 * Returns the outcome of a map's items. The first call creates the items under the task and the map's name; later calls
 * find them. Until all items have ended, the execution waits: its handler ends here with a WaitOutcome, or holds.
 */
export async function mapItems(o: MapServices, caller: MapCaller, call: MapCall): Promise<unknown> {
  let found = await open(o, caller, call);
  // guard: who runs alone does not hold -> test/runs/map.test.ts: "hold: true has no effect in a suspect, because its worker runs nothing else"
  if (found.state === "running" && call.hold /* guard:alone */ && !caller.alone /* end */) {
    const { db } = o.services;
    const bounds = { timeoutMs: null, signal: caller.signal };
    await o.excusing(runOver({ db, listener: o.listener }, found.run, bounds));
    found = (await o.excusing(findMap(db, caller.claim.id, call.name))) ?? found;
  }
  if (found.state === "running") {
    (caller.waitsFor ??= []).push(found.run);
    throw waits(call.name);
  }
  return outcomeOf(o, caller, call, found);
}

/**
 * Returns the fan-out of this name. An execution may request it once: a second call under the same name would get the
 * first one's outcome. If the first call created nothing, because its items were refused, the name is free again.
 */
async function open(o: MapServices, caller: MapCaller, call: MapCall): Promise<FoundMap> {
  const { name } = call;
  const names = (caller.maps ??= new Set());
  // guard: a name is used once in an execution -> test/runs/map.test.ts: "a map name that is used twice in one execution is refused, whether the first map has ended or not"
  /* guard:once */ if (names.has(name)) throw usedTwice(name); /* end */
  names.add(name);
  try {
    let found = (await known(o, caller, call)) ?? (await make(o, caller, call));
    // guard: a map that another has just made is found -> test/runs/map.test.ts: "a map that a zombie creates at the same moment is reused, not created twice"
    /* guard:found */ found ??= await known(o, caller, call); /* end */
    if (found === null) throw new SluiceError("database_busy", `map ${quote(name)} no longer exists: try again`);
    return found;
  } catch (e) {
    names.delete(name);
    throw e;
  }
}

/**
 * Returns the fan-out of an earlier execution of this task, if it exists; it must be of the same task type and items.
 */
async function known(o: MapServices, caller: MapCaller, call: MapCall): Promise<FoundMap | null> {
  const { services } = o;
  const found = await o.excusing(findMap(services.db, caller.claim.id, call.name));
  if (found === null) return null;
  if (found.stream !== (await o.excusing(services.declarations.stream(call.terms))))
    throw changed(call.name, `with another task than ${call.terms.type}`);
  const { items } = call;
  // guard: a list that changed is refused -> test/runs/map.test.ts: "a map whose list differs in the next execution is refused, and a function for the list is called once"
  if (typeof items === "function") return found;
  const hash = createHash("sha256");
  for (const item of items) add(hash, encodeInput(item, services.payloadBytesMax));
  if (/* guard:changed */ hash.digest("hex") !== found.digest /* end */) throw changed(call.name, "with other items");
  return found;
}

/**
 * Creates all tasks of a fan-out in one transaction, piece by piece. Returns null if another execution has created it
 * meanwhile: one that was about to commit when it lost its claim on this task.
 */
async function make(o: MapServices, caller: MapCaller, call: MapCall): Promise<FoundMap | null> {
  const { services } = o;
  const items = await itemsOf(call);
  const stream = await o.excusing(services.declarations.stream(call.terms));
  return o.inTransaction(async (tx) => {
    const made = await openMap(
      services.db,
      {
        worker: caller.session.id,
        claim: caller.claim,
        name: call.name,
        stream,
        total: items.length,
        window: call.window,
        onError: call.onError,
      },
      tx,
    );
    if (!made.fresh) return null;
    const node = { run: made.run, node: 1, stream };
    const digest = await place(o, node, call.terms, items, tx);
    await markMap(services.db, made.run, digest, tx);
    // Last, because it locks the run that this task belongs to.
    if (items.length > 0) await placed(services.db, node, tx);
    return { run: made.run, stream, digest, state: items.length === 0 ? "succeeded" : "running" };
  });
}

/** Inserts the items' tasks and returns the digest of their inputs. */
async function place(
  o: MapServices,
  node: { readonly run: string; readonly node: number; readonly stream: number },
  terms: TaskTerms<never>,
  items: readonly unknown[],
  tx: Queryable,
): Promise<string> {
  const hash = createHash("sha256");
  const shared = { stream: node.stream, priority: null, attempts: null };
  let piece: Prepared[] = [];
  let from = 0;
  let length = 0;
  let began = performance.now();
  const flush = async (): Promise<void> => {
    for (const batch of await o.excusing(batchesOf(o.services, shared, terms, piece, from)))
      await placeTasks(o.services.db, node, batch, tx);
    from += piece.length;
    piece = [];
    length = 0;
    began = performance.now();
  };
  for (let index = 0; index < items.length; index++) {
    const item = await prepareItem(o.services, terms, items[index], index);
    add(hash, item.input);
    piece.push(item);
    length += item.input.length;
    const full = piece.length === PIECE_ITEMS_MAX || length >= PIECE_LENGTH_MAX;
    if (full || performance.now() - began > PIECE_MS_MAX) await flush();
  }
  if (piece.length > 0) await flush();
  return hash.digest("hex");
}

async function prepareItem(
  services: EnqueueServices,
  terms: TaskTerms<never>,
  input: unknown,
  index: number,
): Promise<Prepared> {
  try {
    return await prepare(terms, input, services.payloadBytesMax);
  } catch (e) {
    if (!isSluiceError(e)) throw e;
    throw new SluiceError(e.code, `${e.message} (item ${index})`, {
      cause: e,
      details: { ...e.details, index },
    });
  }
}

async function itemsOf({ items }: MapCall): Promise<readonly unknown[]> {
  const list: unknown = typeof items === "function" ? await items() : items;
  if (!Array.isArray(list)) throw noList(list);
  if (list.length <= ITEMS_MAX) return list;
  throw new SluiceError("invalid_option", `a map can have at most ${ITEMS_MAX} items`);
}

/** JSON texts contain no control characters, so a control character separates them unambiguously. */
function add(hash: Hash, text: string): void {
  hash.update(text);
  hash.update("\u001e");
}

async function outcomeOf(
  o: MapServices,
  caller: MapCaller,
  call: MapCall,
  { run: id, state }: FoundMap,
): Promise<unknown> {
  const collected = JSON.parse(
    await o.excusing(runResult(o.services.db, id, RESULTS_BYTES_MAX)),
  ) as MapCollected<unknown>;
  if (state !== "succeeded") {
    caller.final = failure(call.name, state, collected);
    throw caller.final;
  }
  return call.onError === "collect" ? collected : collected.results;
}

function failure(
  map: string,
  state: "failed" | "cancelled" | "running",
  { errors, counts }: MapCollected<unknown>,
): SluiceError {
  const causes = errors.toSorted((a, b) => causeRank(a) - causeRank(b));
  const [first] = causes;
  const { message: said, reason } = (first?.error ?? {}) as { message?: string; reason?: string };
  const why = said ?? reason;
  const { failed, cancelled, total } = counts;
  const what = `item ${first?.index ?? 0} ${first?.state ?? state}${why == null ? "" : `: ${why}`}`;
  const message = `${failed} of ${total} items of map "${map}" failed and ${cancelled} were cancelled; ${what}`;
  return new SluiceError(state === "cancelled" ? "task_cancelled" : "task_failed", message, {
    details: { map, counts, errors: causes.slice(0, ERRORS_TOLD_MAX) },
  });
}

/** Sorts failures first, and items that were cancelled only because of another one last. */
function causeRank({ state, error }: MapError): number {
  if (state === "failed") return 0;
  return (error as { reason?: unknown } | null)?.reason === CANCELLED_FOR_ANOTHER_ITEM ? 2 : 1;
}

function usedTwice(name: string): SluiceError {
  return new SluiceError(
    "invalid_option",
    `map ${quote(name)} was already started in this execution: every map of a handler needs a unique name`,
    { details: { option: "name", map: name } },
  );
}

function changed(name: string, what: string): SluiceError {
  return new SluiceError(
    "map_changed",
    `an earlier execution started map ${quote(name)} ${what}: pass a function that returns the items, ` +
      "which is called only once",
    { details: { map: name } },
  );
}
