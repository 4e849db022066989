import type { Case } from "./case.js";
import { named } from "./lost.js";

/** One outcome for each task, and one more for each time that somebody had it retried by hand before. */
export function acceptedTwice({ history, findings, clock }: Case): void {
  for (const task of history.tasks.values()) {
    let retried = 0;
    task.accepted.forEach(({ at, state }, i) => {
      while ((task.retrying[retried] ?? Infinity) <= at) retried++;
      if (i > retried)
        findings.add("acceptedTwice", () => `${named(task)} got outcome number ${i + 1} (${state}) at ${clock(at)}`);
    });
  }
}
