import { connectionsOf, type ConnectionShares } from "../config/connections.js";
import type { PlanInput, Setting } from "./input.js";

/** Who gets which of a process's connections. Where nobody said, handlers have what the others leave. */
export function sharesOf(input: PlanInput, { claimLoops, connections }: Setting): ConnectionShares {
  const { apiConnections } = input;
  const handlerConnections = input.handlerConnections ?? undefined;
  const numbers = { claimLoops, dbConnections: connections, apiConnections };
  return connectionsOf({ ...numbers, handlerConnections });
}

/** What can be done if every task holds a connection by `ctx.transaction` for its whole duration. */
export function transactionsPerSecond(input: PlanInput, setting: Setting): number {
  const { handlers } = sharesOf(input, setting);
  return (setting.processes * handlers * 1000) / input.durations.meanMs;
}
