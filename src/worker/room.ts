import { fitOf, type ConnectionShares } from "../config/connections.js";
import { SluiceError } from "../core/error.js";
import { serverConnections } from "../postgres/server-connections.js";
import type { Connection } from "../postgres/connection.js";
import { statementTimeoutMs as readTimeoutMs } from "../postgres/timeout.js";
import type { WorkerServices } from "./worker-services.js";

// A step or settle may wait 2 s for a row of another's, and the keeper's statements take longer than those.
const STATEMENT_TIMEOUT_MS_MIN = 5_000;

/** Warns of a statement_timeout that may stop statements of a worker. It makes them smaller then, and goes on. */
export async function checkTimeout(connection: Connection, { logger }: WorkerServices): Promise<void> {
  const statementTimeoutMs = await readTimeoutMs(connection);
  if (statementTimeoutMs === null || statementTimeoutMs >= STATEMENT_TIMEOUT_MS_MIN) return;
  logger.warn(
    "the statement_timeout of this role or database is short: batches get smaller when it strikes; " +
      "give workers a role with at least 5 s",
    { statementTimeoutMs },
  );
}

/** The most that a worker may open. Those for enqueue and queries are counted by the first of a process. */
export function mayOpen(services: WorkerServices, { needed, api }: ConnectionShares): number {
  return services.first ? needed : needed - api;
}

/**
 * Looks whether the server has room for all that the worker may open. What it opens only later, under
 * load, would else be refused when it is needed most.
 */
export async function checkRoom(
  connection: Connection,
  services: WorkerServices,
  shares: ConnectionShares,
): Promise<void> {
  const { db, listener, first, logger } = services;
  // Behind a pooler it is the pooler who opens connections; how many it lets in nobody can ask it here.
  if (!db.prepared) return;
  const api = first ? db.apiOpen + (listener === null ? 0 : 1) : 0;
  const may = mayOpen(services, shares);
  const server = await serverConnections(connection);
  // The connection that asks is one of them.
  const { impossible, tight } = fitOf({ may, open: api + 1 }, server);
  const details = { may, ...server };
  if (impossible !== null) throw new SluiceError("connections_exceeded", impossible, { details });
  if (tight !== null) logger.warn(tight, details);
}
