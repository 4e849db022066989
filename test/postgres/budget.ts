/**
 * The same predicate for so long, but at least so many times; from then on every run passes at once,
 * so that a slow machine tries fewer. fast-check's own limits would leave a run going in the
 * background, or count it as skipped.
 */
export function forAtMost<T>(
  budget: { readonly ms: number; readonly runsMin: number },
  predicate: (value: T) => Promise<void>,
): (value: T) => Promise<void> {
  let end: number | undefined;
  let runs = 0;
  return async (value) => {
    end ??= performance.now() + budget.ms;
    if (performance.now() >= end && runs >= budget.runsMin) return;
    runs++;
    await predicate(value);
  };
}
