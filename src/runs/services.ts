import type { Database } from "../postgres/database.js";
import { cancelRun, pauseRun, retryRun, sendEvent, setWindow } from "../postgres/workflow/control.js";
import { runFailures } from "../postgres/workflow/failures.js";
import { inspectGraph, runResult } from "../postgres/workflow/inspect.js";
import { Wait, type WaitBounds } from "../tasks/wait.js";
import { watchThrough, type Ask } from "../tasks/watch.js";
import type { Graph } from "../workflow/graph.js";
import { itemsOf } from "./items.js";
import type { RunServices } from "./run.js";
import { statusOf } from "./status.js";
import { runOver, watchRun } from "./wait.js";

// Errors are reported for this many nodes; the others are in the nodes' status.
const FAILURES_MAX = 20;
const RESULT_BYTES_MAX = 64 * 1024 * 1024;

/** Creates the operations behind run handles; all of them go through `ask`. */
export function runServicesOf(ask: Ask, payloadBytesMax: number): RunServices {
  const askDb = <T>(question: (db: Database) => Promise<T>): Promise<T> => ask(({ db }) => question(db));
  /** Sends a query that may be repeated if its reply is lost. */
  const askUntilAnswered = <T>(id: string, bounds: WaitBounds, question: (db: Database) => Promise<T>): Promise<T> =>
    askDb((db) => new Wait(db, bounds, `run ${id}`).ask(() => question(db)));
  return {
    payloadBytesMax,
    status: (id) => askDb((db) => statusOf(db, id)),
    watch: (id, signal) => watchThrough(ask, (services) => watchRun(services, id, signal)),
    items: (id, node, search) => askDb((db) => itemsOf(db, id, node, search)),
    graph: (id) => askDb(async (db) => (await inspectGraph(db, id)) as Graph | null),
    over: (id, bounds) => ask((services) => runOver(services, id, bounds)),
    result: (id, bounds) => askUntilAnswered(id, bounds, (db) => runResult(db, id, RESULT_BYTES_MAX)),
    failures: (id, bounds) => askUntilAnswered(id, bounds, (db) => runFailures(db, id, FAILURES_MAX)),
    cancel: (id, reason) => askDb((db) => cancelRun(db, id, reason)),
    retry: (id) => askDb((db) => retryRun(db, id)),
    pause: (id, paused) => askDb((db) => pauseRun(db, id, paused)),
    window: (id, node, window) => askDb((db) => setWindow(db, id, node, window)),
    send: (event, tx) => askDb((db) => sendEvent(db, event, tx)),
  };
}
