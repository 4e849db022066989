import { randomBytes } from "node:crypto";
import pg from "pg";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { limit, Sluice, task, type, workflow } from "../../src/index.js";
import { openHouse, type House } from "./house.js";

// Settings of a role, a database or a connection must not change results.
let house: House;
beforeAll(async () => {
  house = await openHouse();
});
afterAll(() => house.close());

const text = "Zoë \\ ' \" π \u2028";
const tenant = limit("tenant", { perKey: 2, total: 3 });
const input = type<{ text: string }>();
const echo = task("echo", {
  input,
  limits: [{ limit: tenant, key: (i) => i.text }],
  order: (i) => i.text,
});
const flow = workflow("flow", { input }, (w, given) => ({
  said: w.task("say", echo, { text: given.text }),
}));
const runAt = new Date("2030-02-03T04:05:06.789Z");

/** A role with this setting, and how to connect as it. */
async function roleWith(setting: string): Promise<string> {
  const name = `role_${randomBytes(6).toString("hex")}`;
  await house.sql(`create role ${name} superuser login password 'secret'`);
  await house.sql(`alter role ${name} set ${setting}`);
  onTestFinished(async () => void (await house.sql(`drop role ${name}`)));
  const url = new URL(house.url);
  [url.username, url.password] = [name, "secret"];
  return url.href;
}

/** Calls every API that returns a time, a number or a text. */
async function tour(sluice: Sluice): Promise<unknown> {
  const handle = await sluice.enqueue(echo, { text }, { runAt });
  const { createdAt, ...status } = (await handle.status())!;
  const explained = (await handle.explain())!.reasons[0];
  await handle.cancel();
  const finishedAt = (await handle.status())!.finishedAt!;
  const run = await sluice.start(flow, { text });
  const result = await run.result();
  const nodes = (await run.status())!.nodes.map((n) => n.finishedAt);
  const runs = (await sluice.runs()).runs.map((r) => r.createdAt);
  const times = [createdAt, finishedAt, ...nodes, ...runs] as Date[];
  await sluice.schedules.set("daily", { cron: "0 3 1 1 *", task: echo, input: { text } });
  const [schedule] = await sluice.schedules.list();
  const limits = (await sluice.limits.list()).map((l) => l.name);
  const off = times.map((t) => Math.abs(t.getTime() - Date.now()) < 600_000);
  return { status: { ...status, id: 0 }, explained, result, off, schedule, limits };
}

let usual: Promise<unknown> | undefined;

test.each([
  "datestyle = German, DMY",
  "datestyle = SQL, MDY",
  "timezone = 'Asia/Kathmandu'",
  "intervalstyle = sql_standard",
  "bytea_output = escape",
  "extra_float_digits = -15",
  "search_path = nowhere",
  "standard_conforming_strings = off",
  "client_encoding = LATIN1",
  "array_nulls = off",
  "transform_null_equals = on",
  "quote_all_identifiers = on",
])("a role with %s gets the same results", async (setting) => {
  const worker = await house.work([echo.handle((i) => ({ ...i, third: 1 / 3 }))]);
  usual ??= tour(house.sluice);
  const wanted = await usual;
  await house.sql("delete from sluice.workflow_run");
  const url = await roleWith(setting);
  const sluice = await Sluice.connect({ url });
  const pool = new pg.Pool({ connectionString: url });
  pool.on("error", () => {});
  const pooled = await Sluice.connect({ pool });
  const theirs = sluice.worker({ handlers: [echo.handle((i) => ({ ...i, third: 1 / 3 }))] });
  await worker.stop();
  await theirs.start();
  for (const client of [sluice, pooled]) {
    expect(await tour(client)).toEqual(wanted);
    await house.sql("delete from sluice.workflow_run");
  }
  await sluice.close();
  await pooled.close();
  await pool.end();
});
