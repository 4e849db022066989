import { fitOf, type ConnectionShares } from "../config/connections.js";
import { SluiceError } from "../core/error.js";
import { serverConnections } from "../postgres/server-connections.js";
import type { Connection } from "../postgres/connection.js";
import { statementTimeoutMs as readTimeoutMs } from "../postgres/timeout.js";
import type { WorkerServices } from "./worker-services.js";

// A step or settle may wait 2 s for a row that another transaction holds, and the keeper's statements take longer.
const STATEMENT_TIMEOUT_MS_MIN = 5_000;

/**
 * Warns about a statement_timeout that may cancel the worker's statements. In that case the worker makes them smaller
 * and continues.
 */
export async function checkTimeout(connection: Connection, { logger }: WorkerServices): Promise<void> {
  const statementTimeoutMs = await readTimeoutMs(connection);
  if (statementTimeoutMs === null || statementTimeoutMs >= STATEMENT_TIMEOUT_MS_MIN) return;
  logger.warn(
    "the statement_timeout of this role or database is short, so batches shrink when it cancels a statement: " +
      "set at least 5 s for the role of workers",
    { statementTimeoutMs },
  );
}

/**
 * The most connections that a worker may open. Only the first worker of a process counts those for enqueue and queries.
 */
export function mayOpen(services: WorkerServices, { needed, api }: ConnectionShares): number {
  return services.first ? needed : needed - api;
}

/**
 * Checks that the server has room for all connections that the worker may open. Otherwise connections that it opens
 * only later, under load, would be refused when they are needed most.
 */
export async function checkRoom(
  connection: Connection,
  services: WorkerServices,
  shares: ConnectionShares,
): Promise<void> {
  const { db, listener, first, logger } = services;
  // A pooler opens the server connections itself, and this check cannot ask it how many it allows.
  if (!db.prepared) return;
  const api = first ? db.apiOpen + (listener === null ? 0 : 1) : 0;
  const may = mayOpen(services, shares);
  const server = await serverConnections(connection);
  // The connection that runs this query is one of them.
  const { impossible, tight } = fitOf({ may, open: api + 1 }, server);
  const details = { may, ...server };
  if (impossible !== null) throw new SluiceError("connections_exceeded", impossible, { details });
  if (tight !== null) logger.warn(tight, details);
}
