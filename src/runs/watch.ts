import type { Post } from "../tasks/wait.js";
import { statusOf, type RunStatus } from "./status.js";
import { isOver, notFound, RunVigil } from "./wait.js";

const POLL_MS_MIN = 100;
const POLL_MS_MAX = 1_000;

/**
 * The run as it stands now, then whenever it has changed, until it is over. It looks only when the next one is
 * asked for: whoever is slow misses steps in between, and nothing piles up.
 */
export async function* watchRun(
  post: Post,
  id: string,
  signal: AbortSignal | null,
): AsyncGenerator<RunStatus, void, undefined> {
  const vigil = new RunVigil(post, id, { timeoutMs: null, signal });
  let seen = "";
  let pollMs = POLL_MS_MIN;
  try {
    for (;;) {
      const status = await vigil.look(() => statusOf(post.db, id));
      if (status === null) throw notFound(id);
      const text = JSON.stringify(status);
      if (text !== seen) {
        yield status;
        seen = text;
        pollMs = POLL_MS_MIN;
      }
      if (isOver(status.state)) return;
      await vigil.wait(pollMs);
      pollMs = Math.min(pollMs * 1.5, POLL_MS_MAX);
    }
  } finally {
    vigil.close();
  }
}
