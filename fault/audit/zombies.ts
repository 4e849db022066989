import type { Case } from "./case.js";
import type { Zombies } from "./report.js";

/**
 * What runs did after their lease was lost. That is outside the queue's reach: it can only refuse to
 * record it. An outcome that no handler can explain is another question's finding.
 */
export function zombies({ trial }: Case): Zombies {
  const all = trial.judged.filter(({ zombie }) => zombie);
  const completed = all.filter(({ run }) => run.end?.how === "completed");
  const alone = [...new Set(completed.map(({ run }) => run.task))].filter(
    ({ runs, accepted }) =>
      accepted.some(({ state }) => state === "succeeded") &&
      runs.every((run) => run.end?.how !== "completed" || trial.of(run).zombie),
  );
  return {
    runs: all.length,
    completedOutside: completed.length,
    succeededByZombiesAlone: alone.length,
  };
}
