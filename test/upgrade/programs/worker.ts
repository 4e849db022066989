// node worker.ts PACKAGE URL work|hang TYPE...: a worker of this package for these types, until SIGTERM.
import pg from "pg";
import { hanging, working } from "./handlers.js";
import { load, worldOf, type Name } from "./world.js";

const [address, url, mode, ...names] = process.argv.slice(2) as [string, string, string, ...Name[]];
const library = await load(address);
const world = worldOf(library);
const pool = new pg.Pool({ connectionString: url, max: 4 });
const trouble = (level: string) => (message: string, fields?: object) =>
  console.error(`${level}: ${message} ${JSON.stringify(fields)}`);
const logger = { debug: () => {}, info: () => {}, warn: trouble("warn"), error: trouble("error") };
const sluice = await library.Sluice.connect({ url, logger });
const handlers = mode === "hang" ? hanging(world, names) : working(world, names, pool, String(process.pid));
// Claims must not depend on the load of the machine.
const pressure = { memoryPercentMax: false, eventLoopDelayMsMax: false, taskDurationP99MsMax: false } as const;
await sluice.worker({ handlers, pollIntervalMs: 50, leaseMs: mode === "hang" ? 2_000 : 10_000, pressure }).start();
console.log("up");
process.once("SIGTERM", () => void sluice.close().then(() => pool.end()));
