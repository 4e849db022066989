import type { Logger } from "../core/ports.js";
import { explainTask } from "../explain/explain.js";
import type { Database } from "../postgres/database.js";
import type { TaskStatus } from "../postgres/inspect.js";

/** How long a wait lasts before it checks whether any worker serves the task. */
export const UNSERVED_MS = 3_500;
const CHECK_EVERY_MS = 4_000;
const TYPES_MAX = 1_000;

/**
 * Warns once per type that the task someone waits for can never start, because no live worker serves its type: the most
 * likely reason is a forgotten `worker.start()`. Waits of the same type share a check.
 */
export class UnservedWarning {
  readonly #db: Database;
  readonly #log: Logger;
  /** When each type was last checked; Infinity once it was warned about. */
  readonly #checkedMs = new Map<string, number>();

  constructor(db: Database, log: Logger) {
    this.#db = db;
    this.#log = log;
  }

  /** Never rejects: without a reply there is only no warning. */
  async check({ id, type, queue }: TaskStatus): Promise<void> {
    const of = `${queue}\u001f${type}`;
    const nowMs = performance.now();
    if (nowMs - (this.#checkedMs.get(of) ?? Number.NEGATIVE_INFINITY) < CHECK_EVERY_MS) return;
    if (this.#checkedMs.size >= TYPES_MAX) this.#checkedMs.clear();
    this.#checkedMs.set(of, nowMs);
    const explained = await explainTask(this.#db, id).catch(() => null);
    const reason = explained?.reasons.find(({ kind }) => kind === "noWorker");
    if (reason === undefined) return;
    this.#checkedMs.set(of, Number.POSITIVE_INFINITY);
    this.#log.warn("no live worker serves the type of a task whose result is awaited", {
      task: id,
      type,
      queue,
      reason: reason.message,
    });
  }
}
