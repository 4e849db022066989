import type { Case } from "./case.js";

/** When all is over nothing holds a slot, and the schema's own view finds nothing wrong. */
export function atRest({ history, findings }: Case): void {
  for (const { limit, slots } of history.held)
    if (slots > 0) findings.add("heldAtRest", () => `${limit} counts ${slots} when nothing runs`);
  for (const { what } of history.wrong) findings.add("wrong", () => what);
}
