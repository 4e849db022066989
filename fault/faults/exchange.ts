// What an exchange that goes by the proxy is about. The words are those of src/postgres: `step` settles
// and claims in one statement, `settle` records what is no success, `enqueue_many` enqueues.
import type { Exchange } from "../stage.js";

// Of the parameters of `step`.
const tokenAt = 1;
const claimAt = 3;
const successesAt = 4;

/** Something was inserted by it: tasks, or a run of a workflow. */
export function isEnqueue({ statement }: Exchange): boolean {
  return statement.endsWith(".enqueue_many") || statement.endsWith(".workflow_start");
}

/** It asks for tasks, whether it gets any or not. */
export function asksForTasks(exchange: Exchange): boolean {
  return isStep(exchange) && Number(valuesOf(exchange.asked)[claimAt] ?? 0) > 0;
}

/** The token under which a step claims. */
export function tokenOf({ asked }: Exchange): string {
  return valuesOf(asked)[tokenAt] ?? "";
}

/**
 * Tasks were claimed by it. A row is a task, but one may tell how long the look took, and one how many
 * successes came too late.
 */
export function isClaim(exchange: Exchange): boolean {
  return asksForTasks(exchange) && exchange.rows > (settles(exchange) ? 2 : 1);
}

/** Outcomes were recorded by it: a step, a settle, or the commit of a handler's own transaction. */
export function isSettle(exchange: Exchange): boolean {
  const { statement } = exchange;
  if (isStep(exchange)) return settles(exchange);
  return statement.endsWith(".settle") || statement === "commit";
}

function isStep({ statement }: Exchange): boolean {
  return statement.endsWith(".step");
}

function settles({ asked }: Exchange): boolean {
  return valuesOf(asked)[successesAt] != null;
}

/**
 * The parameters in the body of a Bind message: portal and statement end with a zero byte, then come
 * the formats, then each value behind its length; a length of -1 stands for null.
 */
function valuesOf(asked: string): (string | null)[] {
  const body = Buffer.from(asked, "latin1");
  let at = body.indexOf(0, body.indexOf(0) + 1) + 1;
  at += 2 + 2 * body.readInt16BE(at);
  const count = body.readInt16BE(at);
  at += 2;
  const values: (string | null)[] = [];
  for (let i = 0; i < count; i++) {
    const length = body.readInt32BE(at);
    at += 4;
    values.push(length < 0 ? null : body.toString("utf8", at, at + length));
    at += Math.max(0, length);
  }
  return values;
}
