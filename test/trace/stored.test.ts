import { createTraceState, TraceFlags, type TraceState } from "@opentelemetry/api";
import { expect, test } from "vitest";
import * as api from "@opentelemetry/api";
import { spanContextOf, traceText } from "../../src/trace/stored.js";

const span = {
  traceId: "0af7651916cd43dd8448eb211c80319c",
  spanId: "b7ad6b7169203331",
  traceFlags: TraceFlags.SAMPLED,
};
const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

/** A trace state with arbitrary text, which any implementation may return. */
function state(text: string): TraceState {
  const same = (): TraceState => state(text);
  return { get: () => undefined, set: same, unset: same, serialize: () => text };
}

test("a stored span context is read back unchanged", () => {
  expect(traceText(api, span)).toBe(parent);
  expect(spanContextOf(api, parent)).toEqual({ ...span, isRemote: true });
});

test("a stored trace state is read back unchanged", () => {
  const text = traceText(api, { ...span, traceState: createTraceState("a=1,b=two words") })!;
  expect(text).toBe(`${parent} a=1,b=two words`);
  expect(spanContextOf(api, text)!.traceState!.get("b")).toBe("two words");
});

test("a stored span context keeps its sampled flag", () => {
  const text = traceText(api, { ...span, traceFlags: TraceFlags.NONE })!;
  expect(text.endsWith("-00")).toBe(true);
  expect(spanContextOf(api, text)!.traceFlags).toBe(TraceFlags.NONE);
});

test("a trace state is stored if the text has at most 512 characters in total", () => {
  const room = 512 - parent.length - 1;
  const fits = `a=${"x".repeat(room - 2)}`;
  expect(traceText(api, { ...span, traceState: state(fits) })).toBe(`${parent} ${fits}`);
  expect(traceText(api, { ...span, traceState: state(`${fits}x`) })).toBe(parent);
});

test.each(["a=\u0000", "a=1\nb=2", "a=ü", "a=\ud800"])("a trace state %j is not stored", (text) => {
  expect(traceText(api, { ...span, traceState: state(text) })).toBe(parent);
});

test("an invalid span context is not stored", () => {
  expect(traceText(api, { ...span, traceId: "0".repeat(32) })).toBeNull();
  expect(traceText(api, { ...span, spanId: "'; drop table" })).toBeNull();
});

test.each([
  "",
  "nonsense",
  parent.slice(0, -1),
  `${parent}0`,
  `ff${parent.slice(2)}`,
  parent.toUpperCase(),
  `00-${"0".repeat(32)}-b7ad6b7169203331-01`,
  `00-0af7651916cd43dd8448eb211c80319c-${"0".repeat(16)}-01`,
])("the stored text %j is not read as a span context", (text) => {
  expect(spanContextOf(api, text)).toBeNull();
});
