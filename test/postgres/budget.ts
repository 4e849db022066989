/**
 * The same predicate for so long; from then on every run passes at once, so that a slow machine tries
 * fewer. fast-check's own limits would leave a run going in the background, or count it as skipped.
 */
export function forAtMost<T>(
  ms: number,
  predicate: (value: T) => Promise<void>,
): (value: T) => Promise<void> {
  let end: number | undefined;
  return async (value) => {
    end ??= performance.now() + ms;
    if (performance.now() < end) await predicate(value);
  };
}
