import type { Case } from "./case.js";
import type { Task } from "./history.js";

/**
 * Whatever was acknowledged, and whatever has run, must have an outcome; also after a retry by hand
 * that made it run again. What was never acknowledged and never ran may be there or not.
 */
export function lost({ history, findings }: Case): void {
  for (const task of history.tasks.values()) {
    if (task.accepted.length === 0) {
      if (task.acknowledged) findings.add("lost", () => `${named(task)} was acknowledged and has no outcome`);
      else if (task.runs.length > 0) findings.add("lost", () => `${named(task)} has run and has no outcome`);
    } else if (isUnfinished(task))
      findings.add("lost", () => `${named(task)} was retried by hand and has no outcome since`);
  }
}

function isUnfinished({ accepted, retrying, runs }: Task): boolean {
  const [outcome, retried] = [accepted.at(-1)!.at, retrying.at(-1)];
  if (retried === undefined || retried <= outcome) return false;
  return runs.some(({ line }) => line.at > retried);
}

export function named({ id, claims }: Task): string {
  return claims === null ? `task ${id}` : `${claims.type} ${claims.tag} (task ${id})`;
}
