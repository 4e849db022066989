/**
 * Calls third-party tracing code and ignores its errors. An error there must not fail a task; the tracing SDK reports
 * its own errors.
 */
export function quietly<T>(call: () => T): T | undefined {
  try {
    return call();
  } catch {
    return undefined;
  }
}
