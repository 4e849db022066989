import { expect, test } from "vitest";
import { whyStuck } from "../../fault/stuck.js";
import { task, type } from "../../src/index.js";
import { scene } from "../flow/scene.js";

test("unfinished tasks are reported with their type and place", async () => {
  const { sluice, sql } = await scene();
  const mail = task("mail", { input: type<number>(), concurrency: 3 });
  await sluice.enqueueMany(mail, [1, 2]);
  const lines = (await whyStuck({ sql })).join("\n");
  expect(lines).toMatch(/left, by type and place:\n {2}\{"n": 2, "type": "mail", "first": \d+, "place": "ready"\}/);
  expect(lines).toMatch(/gates:\n.*"cap": 3.*"name": "mail"/);
});
