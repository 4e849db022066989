import { terminal } from "../core/state.js";
import { inspect, type TaskStatus } from "../postgres/inspect.js";
import { AnnouncedWait } from "./ended.js";
import { notKept } from "./handle.js";
import type { WaitServices } from "./wait.js";

const POLL_MS_MIN = 100;
const POLL_MS_MAX = 1_000;

/** Queries the database; rejects as `closed` once the client is closed. */
export type Ask = <T>(question: (services: WaitServices) => Promise<T>) => Promise<T>;

/** Yields the current status of the task, then each changed one, until the task has ended. */
export async function* watchTask(
  services: WaitServices,
  id: string,
  signal: AbortSignal | null,
): AsyncGenerator<TaskStatus, void, undefined> {
  const wait = new AnnouncedWait(services, { id, what: `task ${id}` }, { timeoutMs: null, signal });
  const look = async (): Promise<TaskStatus> => {
    const status = await inspect(services.db, id);
    if (status === null) throw notKept(id);
    return status;
  };
  yield* changesOf(wait, { look, isOver: ({ state }) => terminal(state) });
}

/**
 * Yields what it sees first, then each change, until it is over; then closes the wait. It polls only when the consumer
 * requests the next value: a slow consumer misses intermediate states, and nothing accumulates.
 */
export async function* changesOf<T>(
  wait: AnnouncedWait,
  { look, isOver }: { readonly look: () => Promise<T>; readonly isOver: (seen: T) => boolean },
): AsyncGenerator<T, void, undefined> {
  let seen = "";
  let pollMs = POLL_MS_MIN;
  try {
    for (;;) {
      const status = await wait.look(look);
      const text = JSON.stringify(status);
      if (text !== seen) {
        yield status;
        seen = text;
        pollMs = POLL_MS_MIN;
      }
      if (isOver(status)) return;
      await wait.pause(pollMs);
      pollMs = Math.min(pollMs * 1.5, POLL_MS_MAX);
    }
  } finally {
    wait.close();
  }
}

/** Every poll goes through `ask`, so that closing the client ends the watch as `closed`. */
export async function* watchThrough<T>(
  ask: Ask,
  begin: (services: WaitServices) => AsyncGenerator<T, void, undefined>,
): AsyncGenerator<T, void, undefined> {
  const statuses = await ask(async (services) => begin(services));
  try {
    for (;;) {
      const { done, value } = await ask(() => statuses.next());
      if (done === true) return;
      yield value;
    }
  } finally {
    await statuses.return();
  }
}
