import { task, type } from "../../src/client.js";

/** Task types for the tests of workflows. None has a handler here. */
export const listAccounts = task("list-accounts", {
  input: type<{ region: string }>(),
  output: type<{ accounts: { id: string }[]; next: string | null; total: number }>(),
});
export const syncAccount = task("sync-account", {
  input: type<{ account: { id: string }; index?: number; region?: string }>(),
  output: type<{ rows: number }>(),
  queue: "slow",
});
export const report = task("report", {
  input: type<Record<string, unknown>>(),
  output: type<{ url: string }>(),
});
export const tick = task("tick", { output: type<{ at: string }>() });
