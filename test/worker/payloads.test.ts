import { expect, test } from "vitest";
import { task, type } from "../../src/index.js";
import { Payloads } from "../../src/worker/payloads.js";
import { scene, until } from "../flow/scene.js";

const KB = 1_024;

test("a few inputs of unknown size fit the bound, and after small inputs as many as their sum allows", () => {
  const payloads = new Payloads(1_000);
  expect(payloads.room(0, 0)).toBe(8);
  expect(payloads.room(0, 8)).toBe(0);
  payloads.learn([{ inputLength: 1 }]);
  expect(payloads.room(0, 0)).toBe(1_000);
});

test.each([
  { what: "it was not full", was: false, here: 950, asked: 0, full: false },
  { what: "it was full, and 5 % are free", was: true, here: 950, asked: 0, full: true },
  { what: "it was full, and 10 % are free", was: true, here: 900, asked: 0, full: false },
  { what: "claims in flight count", was: true, here: 890, asked: 2, full: true },
  { what: "nothing fits", was: false, here: 995, asked: 0, full: true },
  { what: "it is empty", was: true, here: 0, asked: 0, full: false },
])("a bound of 1000 for inputs of 10 is full: $full, when $what", ({ was, here, asked, full }) => {
  const payloads = new Payloads(1_000);
  payloads.learn([{ inputLength: 10 }]);
  expect(payloads.full(was, here, asked)).toBe(full);
});

test.each([
  { what: "it is empty", here: 0, asked: 0, room: 10 },
  { what: "it is partly full", here: 350, asked: 0, room: 6 },
  { what: "claims are in flight", here: 350, asked: 2, room: 4 },
  { what: "it is full", here: 1_000, asked: 0, room: 0 },
  { what: "it is more than full", here: 5_000, asked: 3, room: 0 },
])("$room inputs fit into 1000 after inputs of 100, when $what", ({ here, asked, room }) => {
  const payloads = new Payloads(1_000);
  payloads.learn([{ inputLength: 100 }, { inputLength: 100 }]);
  expect(payloads.room(here, asked)).toBe(room);
});

test("an input larger than the bound is claimed alone", () => {
  const payloads = new Payloads(1_000);
  payloads.learn([{ inputLength: 3_000 }]);
  expect(payloads.room(0, 0)).toBe(1);
  expect(payloads.room(0, 1)).toBe(0);
  expect(payloads.room(3_000, 0)).toBe(0);
});

test("the size estimate follows larger inputs immediately and smaller ones gradually", () => {
  const payloads = new Payloads(10_000);
  payloads.learn([{ inputLength: 10 }]);
  payloads.learn([{ inputLength: 1_000 }]);
  expect(payloads.room(0, 0)).toBe(10);
  payloads.learn([{ inputLength: 0 }]);
  expect(payloads.room(0, 0)).toBe(11);
  payloads.learn([]);
  expect(payloads.room(0, 0)).toBe(11);
});

test("a worker holds no more payload bytes than allowed, whatever its permits", async () => {
  const s = await scene();
  const job = task("job", {
    input: type<{ text: string }>(),
    output: type<{ text: string }>(),
  });
  const input = { text: "x".repeat(64 * KB) };
  await s.sluice.enqueueMany(
    job,
    Array.from({ length: 120 }, () => input),
  );
  let [inFlight, peak] = [0, 0];
  const handler = job.handle(async () => {
    peak = Math.max(peak, ++inFlight);
    await new Promise((resolve) => setTimeout(resolve, 3));
    inFlight--;
    return input;
  });
  await s.worker({ handlers: [handler], payloadBytesInFlightMax: 512 * KB });
  await until("all to end", async () => (await s.sluice.counts()).succeeded === 120);
  // 7 inputs with their frames fit, and it uses what it has.
  expect(peak).toBeGreaterThan(2);
  expect(peak).toBeLessThanOrEqual(7);
});
