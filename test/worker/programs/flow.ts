// A worker process of workflows. Its handlers write down what they begin and end; it says what a test may wait for.
import pg from "pg";
import { Sluice, type TaskHandler } from "../../../src/index.js";
import { silentLogger } from "../../../src/core/ports.js";
import { item, link, parent, type FlowConfig } from "./contracts.js";

const config = JSON.parse(process.env["FLEET_CONFIG"] ?? "{}") as FlowConfig;
const say = (line: string): void => void process.stdout.write(`${line}\n`);
const sql = new pg.Pool({ connectionString: config.url, max: 2 });
sql.on("error", () => {});
const sluice = await Sluice.connect({ url: config.url, migrate: false, logger: silentLogger });

async function note(what: string, of: { flow: number; at: number }, kind: string): Promise<void> {
  const values = [config.name, what, of.flow, of.at, kind];
  await sql.query("insert into seen (process, what, flow, at, kind) values ($1, $2, $3, $4, $5)", values);
}

let meeting: Promise<void> | null = null;

/** One query for all handlers of this process: which tasks have started anywhere? */
async function met(size: number): Promise<void> {
  const begun = "select count(*)::int as n from seen where what = 'link' and at = 0";
  while ((await sql.query<{ n: number }>(begun)).rows[0]!.n < size)
    await new Promise((resolve) => setTimeout(resolve, 20));
}

const all: Record<string, TaskHandler> = {
  link: link.handle(async (input) => {
    await note("link", input, "start");
    if (input.at === 0 && config.meet !== undefined) await (meeting ??= met(config.meet));
    await note("link", input, "end");
  }),
  item: item.handle(async (input) => {
    await note("item", input, "start");
    say(`item ${input.at}`);
    if (input.at >= (config.hangFrom ?? Number.POSITIVE_INFINITY)) await new Promise(() => {});
    await note("item", input, "end");
    return input.at;
  }),
  parent: parent.handle(async ({ flow, items, hold }, ctx) => {
    await note("parent", { flow, at: ctx.attempt }, "start");
    const list = Array.from({ length: items }, (_, at) => ({ flow, at }));
    const results = await ctx.map("items", list, item, { window: 3, hold });
    await note("parent", { flow, at: ctx.attempt }, "end");
    return results.length;
  }),
};

const worker = sluice.worker({
  handlers: config.types.map((name) => all[name]!),
  name: config.name,
  pollIntervalMs: 50,
  leaseMs: config.leaseMs ?? 15_000,
});
await worker.start();
say("ready");
process.once("SIGTERM", () => {
  say(`rss ${process.resourceUsage().maxRSS}`);
  void (async () => {
    await worker.stop({ graceMs: 0 });
    await sluice.close();
    await sql.end();
  })();
});
