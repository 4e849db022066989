declare const claimed: unique symbol;

/**
 * The right to settle one task, once: its id and the token that fences it. T is what the task
 * results in. A Claim comes only from a claim, so settling what was not claimed does not compile.
 */
export interface Claim<in out T = unknown> {
  readonly id: string;
  readonly token: string;
  readonly [claimed]: (result: T) => T;
}

/** Turns a claimed row into a Claim. Only the store, which has just claimed it, may call this. */
export function issueClaim<T = unknown>(id: string, token: string): Claim<T> {
  return { id, token } as Claim<T>;
}

/**
 * What tells one execution of a task from every other, of this task and of all others. The token alone does not: all
 * tasks of one claim statement share it, and a task gets a new one with every claim.
 */
export function executionOf({ id, token }: Pick<Claim, "id" | "token">): string {
  // guard: an execution has a name of its own -> test/worker/handler.test.ts: "ctx.claim differs between all executions, also of tasks that were claimed together"
  return `${/* guard:unique */ id /* end */}-${token}`;
}
