// How faults talk to the queue's server: on connections that the faults themselves do not hit, and
// with patience, because another fault may have taken the server away just now.
import pg from "pg";
import { isSluiceError } from "../../src/index.js";
import type { Stage } from "../stage.js";

const tryEveryMs = 100;
const patienceMs = 15_000;
const queryMsMax = 20_000;

/** By this name the server's log and `terminate-backends` know whom to leave alone. */
export const administratorName = "fault";

/** A connection on which neither a statement timeout nor read-only transactions apply. */
export async function administrator(stage: Stage): Promise<pg.Client> {
  const client = new pg.Client({
    connectionString: stage.server.url,
    application_name: administratorName,
    options: "-c statement_timeout=0 -c default_transaction_read_only=off",
    connectionTimeoutMillis: 5_000,
    query_timeout: queryMsMax,
  });
  // It may be cut at any time; whoever uses it hears of that by his next query.
  client.on("error", () => {});
  await client.connect();
  return client;
}

/** Does something on a connection of its own; undefined when the server was away. */
export async function onServer<T>(stage: Stage, work: (client: pg.Client) => Promise<T>): Promise<T | undefined> {
  return unlessAway(async () => {
    const client = await administrator(stage);
    try {
      return await work(client);
    } finally {
      await client.end().catch(() => {});
    }
  });
}

/** What the work gives, or undefined if the server was away or too busy for it. */
export async function unlessAway<T>(work: () => Promise<T>): Promise<T | undefined> {
  try {
    return await work();
  } catch (e) {
    if (isAway(e)) return undefined;
    throw e;
  }
}

/** Does it again and again while the server is away. For what must be put back, also after the run. */
export async function insist<T>(work: () => Promise<T>): Promise<T> {
  const end = performance.now() + patienceMs;
  for (;;) {
    try {
      return await work();
    } catch (e) {
      if (!isAway(e) || performance.now() > end) throw e;
      await new Promise((resolve) => setTimeout(resolve, tryEveryMs));
    }
  }
}

/** Does a thing that must be put back on a connection of its own, again and again while the server is away. */
export function insistOnServer<T>(stage: Stage, work: (client: pg.Client) => Promise<T>): Promise<T> {
  return insist(async () => {
    const client = await administrator(stage);
    try {
      return await work(client);
    } finally {
      await client.end().catch(() => {});
    }
  });
}

// Connection trouble, no room, read-only, operator's hand, deadlock and timeouts: all of them pass.
const awayClasses = new Set(["08", "53", "57", "40", "58"]);
const awayCodes = new Set(["25006", "55P03"]);

/** Whether the same may succeed later. */
function isAway(e: unknown): boolean {
  if (isSluiceError(e)) return e.code === "database_unavailable" || e.code === "database_busy";
  const code = (e as { code?: unknown } | null)?.code;
  if (typeof code !== "string" || !/^[0-9A-Z]{5}$/.test(code)) return e instanceof Error && isOfDriver(e);
  return awayCodes.has(code) || awayClasses.has(code.slice(0, 2));
}

/** Errors of the network, and those in which the driver says that it lost its connection. */
function isOfDriver(e: Error): boolean {
  return "syscall" in e || /connection|timeout/i.test(e.message);
}
