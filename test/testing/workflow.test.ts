import { expect, test } from "vitest";
import { limit, task, type, workflow } from "../../src/index.js";
import { crash, cutReply } from "../../src/testing/index.js";
import { kit, violations } from "./kit.js";

const perUser = limit("per-user", { perKey: 1 });
const list = task("list", { input: type<number>(), output: type<{ users: string[] }>() });
const sync = task("sync", {
  input: type<{ user: string }>(),
  output: type<string>(),
  limits: [{ limit: perUser, key: ({ user }) => user }],
  retry: { attempts: 1 },
});
const mail = task("mail", { input: type<{ synced: number }>(), output: type<number>() });

const nightly = workflow("nightly", { input: type<number>() }, (w, n) => {
  const users = w.task("list", list, n).users;
  const all = w.each("sync", sync, users, (user) => ({ user }), { window: 2, onError: "collect" });
  const rest = w.sleep("rest", 60_000, { after: [all] });
  const approval = w.waitFor("approval", "approved", { after: [rest] });
  return w.task("mail", mail, { synced: all.counts.succeeded }, { after: [approval] });
});

const handlers = [
  list.handle((n) => ({ users: Array.from({ length: n }, (_, i) => `user ${i}`) })),
  sync.handle(({ user }) => {
    if (user === "user 1") throw new Error("no");
    return user;
  }),
  mail.handle(({ synced }) => synced),
];

test("a drain runs a workflow with keyed items, sleeps on the test clock, events and a result", async () => {
  const t = await kit({ handlers });
  const run = await t.sluice.start(nightly, 3);
  const first = await t.drain();
  expect(first.ran.map(({ type, outcome }) => `${type} ${outcome}`)).toEqual([
    "list succeeded",
    "sync succeeded",
    "sync failed",
    "sync succeeded",
  ]);
  expect(first.nextDueMs).toBe(60_000);
  await t.expectEnqueued(sync, { user: "user 0" }, { order: null, times: 1 });
  await t.clock.advance(60_000);
  expect((await t.drain()).ran).toEqual([]);
  await run.send("approved", { by: "me" });
  expect((await t.drain()).ran.map(({ type }) => type)).toEqual(["mail"]);
  expect(await run.result({ timeoutMs: 5_000 })).toBe(2);
  expect(await violations(t)).toEqual([]);
});

test("a drain runs the items of a map and reports that the handler waits", async () => {
  const fan = task("fan", { input: type<string[]>(), output: type<readonly string[]>() });
  const t = await kit({
    handlers: [
      ...handlers,
      fan.handle((users, ctx) =>
        ctx.map(
          "all",
          users.map((user) => ({ user })),
          sync,
        ),
      ),
    ],
  });
  const handle = await t.sluice.enqueue(fan, ["a", "b"]);
  const { ran } = await t.drain({ faults: [crash(fan), cutReply(sync)] });
  expect(ran.map(({ type, attempt, outcome }) => `${type} ${attempt} ${outcome}`)).toEqual([
    "fan 1 crashed",
    "fan 1 waiting",
    "sync 1 succeeded",
    "sync 1 succeeded",
    "fan 1 succeeded",
  ]);
  expect(ran.map(({ error }) => error).filter((e) => e !== undefined).length).toBe(1);
  expect(await handle.result({ timeoutMs: 5_000 })).toEqual(["a", "b"]);
  expect(await violations(t)).toEqual([]);
});

test("a failed map item under finish fails its parent at once in a drain", async () => {
  const fan = task("fan", { input: type<string[]>() });
  const t = await kit({
    handlers: [
      ...handlers,
      fan.handle((users, ctx) =>
        ctx.map(
          "all",
          users.map((user) => ({ user })),
          sync,
          { onError: "finish" },
        ),
      ),
    ],
  });
  await t.sluice.enqueue(fan, ["user 1", "b"]);
  const { ran } = await t.drain();
  expect(ran.at(-1)).toMatchObject({
    type: "fan",
    outcome: "failed",
    error: { code: "task_failed" },
  });
});

test("a drain refuses a map with hold and gives the reason", async () => {
  const fan = task("fan", { retry: { attempts: 1 } });
  const t = await kit({
    handlers: [...handlers, fan.handle((_, ctx) => ctx.map("all", [{ user: "a" }], sync, { hold: true }))],
  });
  await t.sluice.enqueue(fan);
  const { ran } = await t.drain();
  expect(ran).toMatchObject([{ outcome: "failed", error: { code: "not_drained" } }]);
  expect((ran[0]!.error as Error).message).toContain("hold: true");
});
