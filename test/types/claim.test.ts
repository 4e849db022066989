import { expect, test } from "vitest";
import { issueClaim, type Claim } from "../../src/core/claim.js";
import type { Database } from "../../src/postgres/database.js";
import type { Connection } from "../../src/postgres/connection.js";
import { settle, settleInTransaction } from "../../src/postgres/settle.js";
import { step } from "../../src/postgres/step.js";

// These lines are compiled and never called: see door.test.ts.
declare const line: Connection;
declare const db: Database;
const compiled = (lines: () => unknown) => expect(lines).toBeTypeOf("function");

const claim: Claim = issueClaim("1", "2");
const looksLikeOne = { id: "1", token: "2" };
const stepCall = {
  worker: "1",
  token: "2",
  streams: [1],
  want: 1,
  keepHistory: true,
  from: 1,
  tells: false,
  spots: [],
};
const settlement = { kind: "fail", delayMs: 0, outcome: "" } as const;
const tx = { query: () => Promise.resolve({ rows: [] }) };

test("completing a task that was not claimed does not compile", () => {
  compiled(() => step(line, { ...stepCall, successes: [{ claim, result: "", holds: 0 }] }));
  const forged = [{ claim: looksLikeOne, result: "", holds: 0 }];
  // @ts-expect-error an id and a token are not a claim
  compiled(() => step(line, { ...stepCall, successes: forged }));
  compiled(() => settleInTransaction(db, tx, { worker: "1", claim, result: "", keepHistory: true }));
  compiled(() =>
    // @ts-expect-error an id and a token are not a claim
    settleInTransaction(db, tx, { worker: "1", claim: looksLikeOne, result: "", keepHistory: true }),
  );
});

test("failing, cancelling, snoozing or releasing a task that was not claimed does not compile", () => {
  compiled(() => settle(line, "1", [{ claim, ...settlement }]));
  // @ts-expect-error an id and a token are not a claim
  compiled(() => settle(line, "1", [{ claim: looksLikeOne, ...settlement }]));
  // @ts-expect-error nor is an id
  compiled(() => settle(line, "1", [{ claim: "1", ...settlement }]));
  // @ts-expect-error nor is nothing
  compiled(() => settle(line, "1", [settlement]));
});
