declare const claimed: unique symbol;

/**
 * The right to settle one task, once: its id and its fencing token. T is the type of the task's result. Only a claim
 * statement issues a Claim, so settling an unclaimed task does not compile.
 */
export interface Claim<in out T = unknown> {
  readonly id: string;
  readonly token: string;
  readonly [claimed]: (result: T) => T;
}

/** Turns a claimed row into a Claim. Only the store may call this, directly after claiming the row. */
export function issueClaim<T = unknown>(id: string, token: string): Claim<T> {
  return { id, token } as Claim<T>;
}

/**
 * Returns an identifier that is unique to one execution of one task. The token alone is not unique: all tasks of one
 * claim statement share it, and a task gets a new token with every claim.
 */
export function executionOf({ id, token }: Pick<Claim, "id" | "token">): string {
  // guard: an execution has a name of its own -> test/worker/handler.test.ts: "ctx.claim differs between all executions, also of tasks that were claimed together"
  return `${/* guard:unique */ id /* end */}-${token}`;
}
