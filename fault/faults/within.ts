/**
 * Works with a signal that is aborted by another one, or when its time is over. AbortSignal.any does not do: on Node 20
 * the AbortSignal.timeout inside of it is collected as garbage before it fires.
 */
export async function within<T>(outer: AbortSignal, ms: number, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const over = new AbortController();
  const stop = (): void => over.abort();
  const timer = setTimeout(stop, ms);
  outer.addEventListener("abort", stop);
  if (outer.aborted) stop();
  try {
    return await work(over.signal);
  } finally {
    clearTimeout(timer);
    outer.removeEventListener("abort", stop);
  }
}
