import { SluiceError } from "../core/error.js";
import { inspectRun, type RunState, type RunStatus as RunRow } from "../postgres/workflow/inspect.js";
import { AnnouncedWait } from "../tasks/ended.js";
import type { WaitBounds, WaitServices } from "../tasks/wait.js";
import { changesOf } from "../tasks/watch.js";
import { statusOf, type RunStatus } from "./status.js";

/** Waits until a run has ended. */
export async function runOver(services: WaitServices, id: string, bounds: WaitBounds): Promise<RunRow> {
  return waitForRun(services, id, bounds).end({
    look: async () => found(id, await inspectRun(services.db, id)),
    isOver: ({ state }) => isOver(state),
    late: (run) => stillAt(run, bounds.timeoutMs),
  });
}

/** Yields the current status of the run, then each changed one, until the run has ended. */
export async function* watchRun(
  services: WaitServices,
  id: string,
  signal: AbortSignal | null,
): AsyncGenerator<RunStatus, void, undefined> {
  yield* changesOf(waitForRun(services, id, { timeoutMs: null, signal }), {
    look: async () => found(id, await statusOf(services.db, id)),
    isOver: ({ state }) => isOver(state),
  });
}

/** Waits for the end of a run. The database announces it under the negative id of the run, which no task has. */
export function waitForRun(services: WaitServices, id: string, bounds: WaitBounds): AnnouncedWait {
  return new AnnouncedWait(services, { id: `-${id}`, what: `run ${id}` }, bounds);
}

/** Returns whether a run in this state has ended, until it is retried. */
function isOver(state: RunState): boolean {
  return state === "succeeded" || state === "failed" || state === "cancelled";
}

function found<T>(id: string, run: T | null): T {
  if (run !== null) return run;
  throw new SluiceError(
    "run_not_found",
    `run ${id} does not exist: it ended and its history was not kept, or it was never committed`,
    {
      details: { id },
    },
  );
}

function stillAt({ id, name, state }: RunRow, timeoutMs: number | null): SluiceError {
  return new SluiceError("wait_timeout", `run ${id} of ${name} is still ${state} after ${timeoutMs} ms`, {
    details: { id },
  });
}
