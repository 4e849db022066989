/**
 * A task is in exactly one state. It is `scheduled` until its time, `waiting` at a gate, `ready`
 * to be claimed, `running` under a claim, and then for ever one of the three terminal states.
 */
export const TASK_STATES = ["scheduled", "waiting", "ready", "running", "succeeded", "failed", "cancelled"] as const;

export type TaskState = (typeof TASK_STATES)[number];

/** The states that a task does not leave, unless it is retried by hand. */
type TerminalState = Extract<TaskState, "succeeded" | "failed" | "cancelled">;

/** Whether a task in this state is over. */
export function terminal(state: TaskState): state is TerminalState {
  return state === "succeeded" || state === "failed" || state === "cancelled";
}
