import type { Line } from "./audit.js";

/** One run of a handler, as the log tells it. */
export interface Run {
  readonly task: string;
  readonly worker: string;
  readonly type: string;
  readonly orderKey: string | null;
  readonly place: number;
  readonly limits: readonly string[];
  readonly start: number;
  /** When its handler stopped: with its own last line, or with its process; never, if neither is known. */
  readonly stop: number;
  /** It came to its end, and that end stands. */
  readonly completed: boolean;
  /** How long after its worker's death its task began again. */
  readonly reclaimedAfterMs: number | null;
}

/** Every run, by its start. */
export function runsOf(log: readonly Line[]): Run[] {
  const deaths = new Map(
    log.filter((line) => line.kind === "dead").map((line) => [line.worker, line.at]),
  );
  const lasts = lastLines(log);
  const next = new Map<string, number>();
  const runs: Run[] = [];
  // Backwards, so that each run knows when its task began again.
  for (const line of log.filter((l) => l.kind === "start").toReversed()) {
    runs.push(runOf(line, lasts.get(idOf(line)), deaths.get(line.worker), next.get(line.task!)));
    next.set(line.task!, line.at);
  }
  return runs.toReversed();
}

/** The line with which a handler stopped. Where it has both, its commit came through and only the reply did not. */
function lastLines(log: readonly Line[]): Map<string, Line> {
  const ends = log.filter((line) => line.kind === "end");
  const lefts = log.filter((line) => line.kind === "left");
  return new Map([...lefts, ...ends].map((line) => [idOf(line), line]));
}

function idOf({ task, claim }: Line): string {
  return `${task} ${claim}`;
}

/**
 * A worker may die after a handler's end and before that is recorded. The task then runs again, as
 * promised, and the first end does not stand; unless it was the record itself.
 */
function runOf(
  start: Line,
  last: Line | undefined,
  diedAt: number | undefined,
  again?: number,
): Run {
  const recorded = last?.kind === "end" && last.recorded === true;
  const reclaimed =
    diedAt !== undefined &&
    again !== undefined &&
    again > diedAt &&
    !recorded &&
    last?.kind !== "left";
  return {
    task: start.task!,
    worker: start.worker!,
    type: start.type!,
    orderKey: start.order_key,
    place: start.place!,
    limits: start.limits!,
    start: start.at,
    stop: last?.at ?? diedAt ?? Number.POSITIVE_INFINITY,
    completed: last?.kind === "end" && !reclaimed,
    reclaimedAfterMs: reclaimed ? Math.round(again - diedAt) : null,
  };
}
