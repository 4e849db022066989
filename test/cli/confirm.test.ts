import { PassThrough } from "node:stream";
import { afterEach, expect, test } from "vitest";
import { confirmed } from "../../src/cli/confirm.js";

afterEach(() => {
  process.exitCode = undefined;
});

/** Asks on a terminal where this was typed. */
async function asked(typed: string): Promise<{ answer: boolean; shown: string; code: typeof process.exitCode }> {
  const input = Object.assign(new PassThrough(), { isTTY: true });
  const output = Object.assign(new PassThrough(), { isTTY: true });
  let shown = "";
  output.on("data", (chunk: Buffer) => (shown += chunk.toString()));
  input.end(typed);
  const answer = await confirmed("pause it?", {}, { input, output });
  return { answer, shown, code: process.exitCode };
}

test.each(["y\n", "YES\n", " yes \n"])("a verb that asks goes on after %j", async (typed) => {
  expect(await asked(typed)).toMatchObject({
    answer: true,
    shown: expect.stringContaining("pause it? [y/N] ") as string,
  });
  expect(process.exitCode).toBeUndefined();
});

test.each(["n\n", "\n", "yep\n", ""])("a verb that asks changes nothing after %j and exits with 1", async (typed) => {
  expect(await asked(typed)).toMatchObject({
    answer: false,
    shown: expect.stringContaining("nothing was changed") as string,
    code: 1,
  });
});

test("a verb that asks throws without a terminal, and does not ask with --yes", async () => {
  const input = new PassThrough();
  const output = new PassThrough();
  await expect(confirmed("pause it?", {}, { input, output })).rejects.toMatchObject({ code: "invalid_option" });
  expect(await confirmed("pause it?", { yes: true }, { input, output })).toBe(true);
  expect(output.read()).toBeNull();
});
