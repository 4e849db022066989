// Sets the same schedule at the same moment as other processes, and prints the result.
import pg from "pg";
import { Client, task, tickTime, type } from "../../../src/client.js";

const url = process.argv[2]!;
const client = await Client.connect({ url, migrate: false, listen: false });
const report = task("report", { input: type<{ day: string }>(), concurrency: 1 });
const start = new pg.Client(url);
await start.connect();
console.log("ready");
await start.query("select pg_advisory_lock_shared(1)");
const status = await client.schedules.set("nightly", {
  cron: "0 3 * * *",
  timeZone: "America/New_York",
  task: report,
  input: { day: tickTime },
});
console.log(JSON.stringify(status));
await start.end();
await client.close();
