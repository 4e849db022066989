import { afterEach, expect, test } from "vitest";
import { Play, ref } from "./play.js";

let play: Play;
afterEach(async () => {
  expect(await play.violations()).toEqual([]);
  await play.close();
});

const types = { a: {}, b: {}, c: {}, d: {} };

test("a chain runs one after the other, each with what the one before came to", async () => {
  play = await Play.open(types);
  const run = await play.run(
    {
      one: ["task", { type: "a", input: { region: ref("input", "region") } }],
      two: ["task", { type: "b", after: ["one"], input: { got: ref("one", "list", "1"), all: ref("one") } }],
      three: ["task", { type: "c", after: ["two"], input: [ref("two"), ref("one", "nowhere"), 'a "$" {'] }],
    },
    { region: "eu" },
  );
  await play.drain((t) => ({ result: t.type === "a" ? { list: [1, { x: "é\n" }] } : t.type }));
  expect(play.started.map((t) => [t.type, t.input])).toEqual([
    ["a", { region: "eu" }],
    ["b", { got: { x: "é\n" }, all: { list: [1, { x: "é\n" }] } }],
    ["c", ["b", null, 'a "$" {']],
  ]);
  expect(await play.state(run)).toBe("succeeded");
  expect(await play.result(run)).toEqual({ three: "c" });
});
