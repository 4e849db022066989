// An idle worker. Prints how many statements it has sent, at first and for each line of its standard input; ends with it.
import { createInterface } from "node:readline";
import pg from "pg";
import { Sluice, task } from "../../src/index.js";

type Query = (this: unknown, ...args: unknown[]) => unknown;

let statements = 0;
const prototype = pg.Client.prototype as unknown as { query: Query };
const { query } = prototype;
prototype.query = function counted(...args) {
  statements++;
  return query.apply(this, args);
};

const sluice = await Sluice.connect();
const worker = sluice.worker({
  handlers: [task("noop").handle(() => {})],
  pollIntervalMs: Number(process.env["IDLE_POLL_MS"]),
});
await worker.start();
const tell = (): void => void process.stdout.write(`${statements}\n`);
tell();
createInterface(process.stdin)
  .on("line", tell)
  .once("close", () => void sluice.close());
