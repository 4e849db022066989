// Polls for due schedules in a loop; the keeper of a worker does so from time to time.
import { setTimeout as delay } from "node:timers/promises";
import { silentLogger } from "../../../src/core/ports.js";
import { tick } from "../../../src/schedules/tick.js";
import { Database } from "../../../src/postgres/database.js";
import { Connection } from "../../../src/postgres/connection.js";

const { url, pauseMs } = JSON.parse(process.env["FLEET_CONFIG"]!) as {
  url: string;
  pauseMs: number;
};
const line = new Connection(new Database({ url }), 60_000);
const told = new AbortController();
process.once("SIGTERM", () => told.abort());
await tick(line, silentLogger);
console.log("ready");
let ticks = 0;
while (!told.signal.aborted) {
  ticks += (await tick(line, silentLogger)).ticks;
  await delay(pauseMs);
}
console.log(`ticks ${ticks}`);
await line.close();
