import { expect, test } from "vitest";
import { task, type, type MapCollected, type TaskContext } from "../../src/index.js";

// These lines are compiled and never called: see door.test.ts.
declare const ctx: TaskContext;
const compiled = (lines: () => unknown) => expect(lines).toBeTypeOf("function");

const size = task("size", { input: type<{ url: string }>(), output: type<number>() });
const inputs = [{ url: "a" }];

test("a map returns the results of its task according to its policy", () => {
  compiled(async () => {
    const list: readonly number[] = await ctx.map("m", inputs, size);
    const finished: readonly number[] = await ctx.map("m", inputs, size, { onError: "finish" });
    const all: MapCollected<number> = await ctx.map("m", inputs, size, { onError: "collect" });
    const first: number | null | undefined = all.results[0];
    // @ts-expect-error: a collected item may be null
    const wrong: readonly number[] = all.results;
    return [list, finished, first, wrong];
  });
});

test("a map takes inputs of its task, as a list or as a function", () => {
  compiled(() => ctx.map("m", () => inputs, size));
  compiled(() => ctx.map("m", () => Promise.resolve(inputs), size));
  // @ts-expect-error: not what the task takes
  compiled(() => ctx.map("m", [{ uri: "a" }], size));
  // @ts-expect-error: no list
  compiled(() => ctx.map("m", { url: "a" }, size));
  // @ts-expect-error: no such policy
  compiled(() => ctx.map("m", inputs, size, { onError: "ignore" }));
});
