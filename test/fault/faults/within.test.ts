import { expect, test } from "vitest";
import { within } from "../../../fault/faults/within.js";

const aborted = (signal: AbortSignal): Promise<string> =>
  new Promise((resolve) => {
    if (signal.aborted) resolve("aborted");
    signal.addEventListener("abort", () => resolve("aborted"));
  });

test("within() aborts work when its time is over, when another signal aborts, and when that has aborted before", async () => {
  const { signal } = new AbortController();
  expect(await within(signal, 5, aborted)).toBe("aborted");
  const outer = new AbortController();
  const work = within(outer.signal, 1_000_000, aborted);
  outer.abort();
  expect(await work).toBe("aborted");
  expect(await within(outer.signal, 1_000_000, aborted)).toBe("aborted");
});

test("within() does not abort work that has ended in time", async () => {
  const outer = new AbortController();
  let kept: AbortSignal | undefined;
  expect(await within(outer.signal, 5, async (signal) => ((kept = signal), 7))).toBe(7);
  outer.abort();
  expect(kept!.aborted).toBe(false);
});
