import { expect, test } from "vitest";
import type { SluiceError } from "../../src/index.js";
import { fromDriver, isReplyLost, toSluiceError } from "../../src/postgres/errors.js";

const failed = (code: string): Error => Object.assign(new Error("no"), { code });

test("an outage reported by the server carries its SQLSTATE, and a network error carries none", () => {
  const detailsOf = (code: string): unknown => {
    const error = toSluiceError(failed(code)) as SluiceError;
    expect(error.code).toBe("database_unavailable");
    return error.details;
  };
  expect(detailsOf("53300")).toEqual({ sqlstate: "53300" });
  expect(detailsOf("57P01")).toEqual({ sqlstate: "57P01" });
  for (const code of ["ECONNREFUSED", "EPIPE"]) expect(detailsOf(code)).toBeUndefined();
});

test.for([
  ["EPIPE", true],
  ["ECONNRESET", true],
  ["08006", true],
  ["57P01", true],
  ["40001", false],
  ["XX000", false],
  ["28P01", false],
] as const)("error %s means that a statement in flight may have committed: %s", ([code, lost]) => {
  expect(isReplyLost(failed(code))).toBe(lost);
  expect(isReplyLost(toSluiceError(failed(code)))).toBe(lost);
});

test.for([
  "Connection terminated unexpectedly",
  "Connection terminated due to connection timeout",
  "Client was closed and is not queryable",
  "Client has encountered a connection error and is not queryable",
  "timeout expired",
  "timeout exceeded when trying to connect",
  "Query read timeout",
])("the driver error %s counts as a lost reply", (message) => {
  expect(isReplyLost(new Error(message))).toBe(true);
  expect(toSluiceError(new Error(message))).toMatchObject({ code: "database_unavailable" });
});

test("an error that did not come from the driver is not a lost reply", () => {
  const others = [new TypeError("x is not a function"), failed("ENOENT"), { message: "odd" }];
  for (const e of others) {
    expect(isReplyLost(e)).toBe(false);
    expect(toSluiceError(e)).toBe(e);
  }
});

test("any rejection by the driver is a lost reply, unless the server has sent a code", () => {
  expect(isReplyLost(fromDriver(new TypeError("x is not a function")))).toBe(true);
  expect(isReplyLost(fromDriver({ message: "odd" }))).toBe(true);
  const told = failed("23505");
  expect(fromDriver(told)).toBe(told);
  expect(isReplyLost(fromDriver(failed("57P01")))).toBe(true);
  expect(isReplyLost(fromDriver(failed("25P03")))).toBe(false);
});
