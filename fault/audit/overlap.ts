import type { Case } from "./case.js";
import { named } from "./lost.js";
import type { Judged } from "./trial.js";

/**
 * Nothing starts while another task of its order key surely runs, whoever had it retried or asked to
 * cancel it. Two runs of one task beside each other are doubled, which is another question.
 */
export function overlapped({ trial, findings, clock }: Case): void {
  const keys = new Map<string, Holders>();
  for (const one of trial.judged) {
    const key = one.run.line.orderKey;
    if (key === null || one.doubtfulStart) continue;
    let holders = keys.get(key);
    if (holders === undefined) keys.set(key, (holders = new Holders()));
    const beside = holders.beside(one);
    if (beside !== undefined)
      findings.add(
        "overlapped",
        () => `${key}: ${named(one.run.task)} started at ${clock(one.start)} beside ${named(beside.run.task)}`,
      );
    holders.add(one);
  }
}

/** Of those that have started, the one that holds longest, and the one of another task that does. */
class Holders {
  #two: Judged[] = [];

  beside({ run, start }: Judged): Judged | undefined {
    return this.#two.find((one) => one.run.task !== run.task && one.sureUntil > start);
  }

  add(one: Judged): void {
    const [first, ...rest] = [one, ...this.#two].toSorted((a, b) => b.sureUntil - a.sureUntil);
    const other = rest.find(({ run }) => run.task !== first!.run.task);
    this.#two = other === undefined ? [first!] : [first!, other];
  }
}
