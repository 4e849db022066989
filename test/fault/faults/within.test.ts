import { expect, test } from "vitest";
import { within } from "../../../fault/faults/within.js";

const aborted = (signal: AbortSignal): Promise<string> =>
  new Promise((resolve) => {
    if (signal.aborted) resolve("aborted");
    signal.addEventListener("abort", () => resolve("aborted"));
  });

test("work is told when its time is over, when somebody else says so, and when he has said so before", async () => {
  const { signal } = new AbortController();
  expect(await within(signal, 5, aborted)).toBe("aborted");
  const outer = new AbortController();
  const work = within(outer.signal, 1_000_000, aborted);
  outer.abort();
  expect(await work).toBe("aborted");
  expect(await within(outer.signal, 1_000_000, aborted)).toBe("aborted");
});

test("what has ended in time is not told afterwards", async () => {
  const outer = new AbortController();
  let kept: AbortSignal | undefined;
  expect(await within(outer.signal, 5, async (signal) => ((kept = signal), 7))).toBe(7);
  outer.abort();
  expect(kept!.aborted).toBe(false);
});
