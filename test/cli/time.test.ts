import { expect, test } from "vitest";
import { timeOf } from "../../src/cli/time.js";
import { caught } from "../core/caught.js";

const nowMs = Date.parse("2030-01-31T12:00:00Z");

test.each([
  ["1h", "2030-01-31T11:00:00.000Z"],
  ["30m", "2030-01-31T11:30:00.000Z"],
  ["90s", "2030-01-31T11:58:30.000Z"],
  ["2d", "2030-01-29T12:00:00.000Z"],
  ["1w", "2030-01-24T12:00:00.000Z"],
  ["1.5h", "2030-01-31T10:30:00.000Z"],
  ["0m", "2030-01-31T12:00:00.000Z"],
  ["2030-01-01T00:00:00Z", "2030-01-01T00:00:00.000Z"],
  ["2030-01-01", "2030-01-01T00:00:00.000Z"],
])("the time %s is read as %s", (text, time) => {
  expect(timeOf("--since", text, nowMs).toISOString()).toBe(time);
});

test.each(["", "yesterday", "1x", "-1h", "h", "1 h", "1h30", "5", "1e3h", "999999999w"])(
  "the time %j is refused",
  (text) => {
    const error = caught(() => timeOf("--since", text, nowMs));
    expect(error).toMatchObject({ code: "invalid_option", details: { option: "since" } });
    expect(error.message).toBe(`--since must be a time (ISO 8601), or how long ago: 30m, 1h, 2d, not "${text}"`);
  },
);
