import { afterEach, expect, test } from "vitest";
import { compile, Play } from "./play.js";

let play: Play;
afterEach(async () => {
  expect(await play.violations()).toEqual([]);
  await play.close();
});

const WEEK_MS = 7 * 24 * 3_600_000;

test("a graph that is declared again is the latest of its name, and is not pruned", async () => {
  play = await Play.open({ a: {} });
  const declare = (digest: string, name = "flow"): Promise<number> =>
    play.db.value("select sluice.workflow_declare($1, $2, '{}', $3)", [
      name,
      digest,
      JSON.stringify(compile({ one: ["task", { type: "a" }] })),
    ]);
  const last = (): Promise<number> =>
    play.db.value("select id from sluice.workflow_graph where name = 'flow' order by declared desc limit 1");
  const [one, two] = [await declare("1"), await declare("2")];
  await declare("1", "other");
  expect(await last()).toBe(two);
  expect(await declare("1")).toBe(one);
  expect(await last()).toBe(one);
  await play.scene.moveClock(WEEK_MS + 1_000);
  expect(await play.db.value("select sluice.workflow_prune_graphs($1, 100)", [WEEK_MS])).toBe(1);
  expect(await last()).toBe(one);
  // A pruned graph is stored again.
  expect(await declare("2")).toBeGreaterThan(two);
  expect(await last()).not.toBe(one);
});
