// Long enough for a loaded machine: only work that hangs takes this long.
const END_MS_MAX = 15_000;

/** The same promise, or an error if it does not settle: more precise and earlier than the timeout of a test. */
export async function ends<T>(work: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const hangs = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`it did not end within ${END_MS_MAX} ms`)), END_MS_MAX);
  });
  return Promise.race([work, hangs]).finally(() => clearTimeout(timer));
}
