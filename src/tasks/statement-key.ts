import type { TaskTerms } from "../core/terms.js";
import type { Prepared, Shared } from "./prepare.js";

/**
 * A key for the arguments that enqueue_many takes once for all tasks of a statement: tasks of one key can share a
 * statement.
 */
export class StatementKeys {
  readonly #numbers = new WeakMap<TaskTerms<never>, number>();
  #last = 0;

  of(terms: TaskTerms<never>, common: Shared, { limits }: Prepared): string {
    const { priority, runAt, delayMs, group } = common;
    const plain = `${this.#numberOf(terms)} ${priority}`;
    if (runAt === null && delayMs === null && group === null && limits.length === 0) return plain;
    // A function may decide the limits, so one name can occur in two forms: the database refuses one of them.
    const passed = limits.map(({ limit: { name, total, perKey } }) => [
      name,
      total === undefined,
      perKey === undefined,
    ]);
    const rest = [runAt?.getTime(), delayMs, group?.name, group?.total, passed];
    return `${plain} ${JSON.stringify(rest)}`;
  }

  /** By identity: two contracts of one type may differ. */
  #numberOf(terms: TaskTerms<never>): number {
    let number = this.#numbers.get(terms);
    if (number === undefined) this.#numbers.set(terms, (number = ++this.#last));
    return number;
  }
}
