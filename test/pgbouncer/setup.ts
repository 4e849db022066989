import { startPooler } from "./pgbouncer.js";

/** One PgBouncer for the whole run, in front of the server that test/support/global.ts found. */
export default async function setup(): Promise<() => Promise<void>> {
  const { SLUICE_TEST_POOLER: mode, SLUICE_TEST_URL: url } = process.env;
  if (mode !== "listen" && mode !== "poll")
    throw new Error("SLUICE_TEST_POOLER says how workers wake up: listen or poll");
  const pooler = await startPooler(url!);
  process.env.SLUICE_TEST_POOLER_URL = pooler.through(url!);
  // Programs that the tests start also connect through it.
  process.env.SLUICE_TEST_PRELOAD = new URL("preload.mjs", import.meta.url).href;
  return () => pooler.stop();
}
