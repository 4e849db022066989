import { expect, test } from "vitest";
import { limit, task } from "../../src/index.js";
import { scene } from "../flow/scene.js";
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
