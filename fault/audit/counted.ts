// Holds what workers say of themselves against what was recorded of them.
import type { Case } from "./case.js";
import type { History, Of } from "./history.js";
import type { Past } from "./past.js";
import type { Counted } from "./report.js";

interface Numbers {
  readonly completed: number;
  readonly unconfirmed: number;
}

/**
 * At every scrape a worker may have counted no more completions than were recorded under its claims
 * until then, and no fewer than at the scrape before. One that ended in good order has counted all of
 * them, but for those of which it says that it does not know.
 */
export function miscounted({ history, findings, clock }: Case): Counted {
  const recorded = recordedBy(history);
  const counted = { scrapes: 0, workers: 0, ended: 0, completed: 0, unconfirmed: 0 };
  for (const past of history.processes.values()) {
    if (past.scrapes.length === 0) continue;
    const times = recorded.get(past.name) ?? [];
    let last: Numbers = { completed: 0, unconfirmed: 0 };
    for (const scrape of past.scrapes) {
      const now = numbersOf(scrape.text);
      const wrong = now === null ? `told ${scrape.text || "nothing"}` : complaint(now, last, times, scrape);
      if (wrong !== null) findings.add("miscounted", () => `${past.name} ${wrong}, at ${clock(scrape.at)}`);
      last = now ?? last;
    }
    counted.scrapes += past.scrapes.length;
    counted.workers++;
    counted.ended += endedWell(past) ? 1 : 0;
    counted.completed += last.completed;
    counted.unconfirmed += last.unconfirmed;
  }
  return counted;
}

function complaint(
  { completed, unconfirmed }: Numbers,
  before: Numbers,
  recorded: readonly number[],
  { at, last }: Of<"scraped">,
): string | null {
  const until = 1 + recorded.findLastIndex((time) => time <= at);
  if (completed < before.completed || unconfirmed < before.unconfirmed)
    return `counted back to ${completed} completed and ${unconfirmed} unconfirmed`;
  if (completed > until) return `counted ${completed} completed of ${until} that were recorded`;
  if (last && recorded.length > completed + unconfirmed)
    return `ended with ${completed} completed and ${unconfirmed} unconfirmed of ${recorded.length} that were recorded`;
  return null;
}

/** When successes were recorded, by the process whose run had the claim; ascending. */
function recordedBy({ tasks }: History): Map<string, number[]> {
  const recorded = new Map<string, number[]>();
  for (const { accepted, runs } of tasks.values()) {
    for (const { state, claim, at } of accepted) {
      const run = runs.find(({ line }) => line.claim === claim);
      if (state !== "succeeded" || run === undefined) continue;
      const times = recorded.get(run.past.name);
      if (times === undefined) recorded.set(run.past.name, [at]);
      else times.push(at);
    }
  }
  for (const times of recorded.values()) times.sort((a, b) => a - b);
  return recorded;
}

/** The two numbers in a text as Prometheus reads it; null if they are not there. */
function numbersOf(text: string): Numbers | null {
  const value = (name: string): number =>
    Number(new RegExp(`^sluice_worker_tasks_${name}_total (\\d+)$`, "m").exec(text)?.[1] ?? "none");
  const numbers = { completed: value("completed"), unconfirmed: value("unconfirmed") };
  return Number.isNaN(numbers.completed + numbers.unconfirmed) ? null : numbers;
}

const endedWell = ({ scrapes }: Past): boolean => scrapes.some(({ last }) => last);
