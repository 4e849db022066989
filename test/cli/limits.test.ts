import { expect, test } from "vitest";
import { limit, task } from "../../src/index.js";
import { scene, signal } from "../flow/scene.js";
import { sluice } from "./run.js";

test("sluice limits lists limits page by page as text and as JSON", async () => {
  const s = await scene();
  const keyed = limit("tenant", { perKey: 2 });
  await s.sluice.sync([limit("bank", { total: 5 }), limit("lifted", { total: null }), keyed]);
  await s.sluice.limits.set("bank", { total: 7 });
  await s.sluice.enqueue(task("job"), undefined, { group: "tenant-1", groupLimit: 3 });
  const cli = (...args: string[]) => sluice(["limits", ...args], { DATABASE_URL: s.url });
  const [people, first, rest, wrong] = await Promise.all([
    cli(),
    cli("--limit", "2", "--json"),
    cli("--after", "lifted", "--prefix", "tenant-", "--json"),
    cli("--limit", "many"),
  ]);
  expect(people).toEqual({
    code: 0,
    err: "",
    out:
      "bank      0 of 7, set by an operator\n" +
      "lifted    0 of no limit\n" +
      "tenant    0 keys, the fullest with 0 of 2\n" +
      "tenant-1  0 of 3\n",
  });
  expect(JSON.parse(first.out)).toMatchObject({
    limits: [{ name: "bank", total: 7, overridden: true }, { name: "lifted" }],
    after: "lifted",
  });
  expect(JSON.parse(rest.out)).toMatchObject({ limits: [{ name: "tenant-1" }], after: null });
  expect([wrong.code, wrong.err]).toEqual([2, expect.stringContaining("whole number")]);
});

test("sluice limits show prints the numbers in force and in code, and the tasks that hold the limit", async () => {
  const s = await scene();
  const [begun, release] = [signal(), signal()];
  const bank = limit("bank", { total: 5 });
  const tenant = limit("tenant", { perKey: 2 });
  const pay = task("pay", { limits: [bank, tenant.for("acme")] });
  const handler = pay.handle(async () => {
    begun.resolve();
    await release.promise;
  });
  await s.worker({ handlers: [handler], name: "w-1", pollIntervalMs: 20 });
  const { id } = await s.sluice.enqueue(pay);
  await begun.promise;
  await s.sluice.limits.set("bank", { total: 7 });
  const cli = (...args: string[]) => sluice(["limits", ...args], { DATABASE_URL: s.url });
  const [people, programs, keyed] = await Promise.all([
    cli("show", "bank"),
    cli("show", "bank", "--json"),
    cli("show", "tenant"),
  ]);
  const since = (await s.sluice.task(id).status())!.startedAt!.toISOString();
  expect(people).toEqual({
    code: 0,
    err: "",
    out:
      "limit bank, set by an operator\n" +
      "  total    1 of 7 (declared: 5)\n" +
      `  held by  task ${id} (pay), running since ${since} on w-1\n`,
  });
  expect(JSON.parse(programs.out)).toMatchObject({
    name: "bank",
    total: 7,
    declared: { total: 5 },
    holders: [{ task: id, type: "pay", queue: "default", key: null, since, worker: "w-1" }],
  });
  expect(keyed.out).toBe(
    "limit tenant\n" +
      "  per key  1 key, the fullest with 1 of 2\n" +
      `  held by  task ${id} (pay, key "acme"), running since ${since} on w-1\n`,
  );
  release.resolve();
});

test("sluice limits set, lift and reset override the numbers of a limit", async () => {
  const s = await scene();
  await s.sluice.sync([limit("bank", { total: 5, perKey: 2 }), limit("mail", { total: 3 })]);
  const cli = (...args: string[]) => sluice(["limits", ...args], { DATABASE_URL: s.url });
  const numbers = async (name: string) => {
    const { total, perKey, overridden } = await s.sluice.limits.get(name);
    return { total, perKey, overridden };
  };
  expect((await cli("set", "bank", "--total", "7", "--per-key", "0")).out).toBe("limit bank: total 7, per key 0\n");
  expect(await numbers("bank")).toEqual({ total: 7, perKey: 0, overridden: true });
  const unasked = await cli("lift", "bank");
  expect([unasked.code, unasked.err]).toEqual([2, expect.stringContaining("--yes")]);
  expect(await numbers("bank")).toMatchObject({ total: 7 });
  expect((await cli("lift", "bank", "--yes")).out).toBe("limit bank: total no limit, per key no limit\n");
  expect(await numbers("bank")).toEqual({ total: null, perKey: null, overridden: true });
  const lifted = await cli("lift", "mail", "--yes", "--json");
  expect(JSON.parse(lifted.out)).toMatchObject({ name: "mail", total: null, declared: { total: 3 } });
  expect((await cli("reset", "bank")).out).toBe("limit bank: total 5, per key 2, as declared in code\n");
  expect(await numbers("bank")).toEqual({ total: 5, perKey: 2, overridden: false });
});

test("sluice limits refuses unknown limits, unknown verbs and changes without a number", async () => {
  const s = await scene();
  await s.sluice.sync([limit("bank", { total: 5 })]);
  const cli = (...args: string[]) => sluice(["limits", ...args], { DATABASE_URL: s.url });
  const unknown = await Promise.all([
    cli("show", "bnak"),
    cli("set", "bnak", "--total", "1"),
    cli("lift", "bnak", "--yes"),
    cli("reset", "bnak"),
  ]);
  const message = 'there is no limit named "bnak"; there are "bank"; did you mean bank?';
  for (const { code, err } of unknown) expect([code, err]).toEqual([1, `error unknown_limit: ${message}\n`]);
  const [bare, word, verb, late, shape] = await Promise.all([
    cli("set", "bank"),
    cli("set", "bank", "--total", "many"),
    cli("sett", "bank"),
    cli("--json", "show", "bank"),
    cli("set", "bank", "--per-key", "1", "--json"),
  ]);
  expect([bare.code, bare.err]).toEqual([2, expect.stringContaining("pass --total, --per-key, or both")]);
  expect([word.code, word.err]).toEqual([2, expect.stringContaining("whole number")]);
  expect([verb.code, verb.err]).toEqual([2, expect.stringContaining("did you mean set?")]);
  expect([late.code, late.err]).toEqual([2, expect.stringContaining("put the verb first: sluice limits show")]);
  expect([shape.code, shape.err]).toEqual([1, expect.stringContaining("limit_shape")]);
});
