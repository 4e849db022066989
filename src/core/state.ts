/**
 * A task is in exactly one state. It is `scheduled` until its time, `waiting` for its order key, a limit, a window or
 * the items of its `ctx.map`, `ready` to be claimed, `running` under a claim, and finally in one of the three terminal
 * states.
 */
export const TASK_STATES = ["scheduled", "waiting", "ready", "running", "succeeded", "failed", "cancelled"] as const;

export type TaskState = (typeof TASK_STATES)[number];

/** States that a task does not leave unless it is retried manually. */
type TerminalState = Extract<TaskState, "succeeded" | "failed" | "cancelled">;

/** Returns whether a task in this state has ended. */
export function terminal(state: TaskState): state is TerminalState {
  return state === "succeeded" || state === "failed" || state === "cancelled";
}
