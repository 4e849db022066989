import { randomBytes } from "node:crypto";
import { isReplyLost } from "./errors.js";

const TRIES_MAX = 5;
const REST_MS = 100;
// If the reply took longer than this to be lost, another wait is not worth it.
const REPEAT_WITHIN_MS = 10_000;

/**
 * Repeats a call after a lost reply. Each call has a token, and the database answers a known token with its earlier
 * answer, so nothing happens twice. Once a reply was lost, only an answer counts: an error of a later try does not
 * reveal what became of the first, which may even be still running.
 */
export async function repeat<T>(ask: (token: string) => Promise<T>): Promise<T> {
  const token = randomBytes(8).readBigInt64BE().toString();
  const began = performance.now();
  let lost: unknown;
  for (let tries = 1; ; tries++) {
    try {
      return await ask(token);
    } catch (e) {
      if (isReplyLost(e)) lost ??= e;
      const late = performance.now() - began > REPEAT_WITHIN_MS;
      if (lost === undefined || tries >= TRIES_MAX || late) throw lost ?? e;
    }
    await new Promise((resolve) => setTimeout(resolve, tries * REST_MS));
  }
}
