import type { Shape } from "../../adapter.js";
import { versionOf } from "../version.js";

export const version = versionOf("bullmq");

const ONE_KEY = "a global concurrency of 1 orders all tasks of a queue, which serves one key only";

/** What open-source BullMQ has no words for, on either store. */
export function cannot({ ordered, limitPerKey }: Shape): string | null {
  if (ordered === true) return `order within a key needs groups, which BullMQ Pro has; ${ONE_KEY}`;
  if (limitPerKey !== undefined) return "a limit per key needs groups, which BullMQ Pro has";
  return null;
}

interface Emitter {
  on(event: "error", listener: (e: Error) => void): unknown;
  readonly closing?: unknown;
}

/** Without a listener BullMQ would hide what goes wrong, or end the process. */
export function loud<T extends Emitter>(emitter: T): T {
  emitter.on("error", (e) => {
    // Connections that are cut while it closes are no news.
    if (emitter.closing === undefined) console.error(e);
  });
  return emitter;
}
