import { expect, test } from "vitest";
import type { SluiceError } from "../../src/index.js";
import { isReplyLost, toSluiceError } from "../../src/postgres/fault.js";

const failed = (code: string): Error => Object.assign(new Error("no"), { code });

test("what the server says of why it is not available is told, what the network says is not", () => {
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
] as const)("with %s a statement under way may have committed: %s", ([code, lost]) => {
  expect(isReplyLost(failed(code))).toBe(lost);
  expect(isReplyLost(toSluiceError(failed(code)))).toBe(lost);
});
