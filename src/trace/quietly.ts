/** Calls somebody else's tracing. What goes wrong there is not worth a task: it has its own way to tell. */
export function quietly<T>(call: () => T): T | undefined {
  try {
    return call();
  } catch {
    return undefined;
  }
}
