/** The samples of a scrape by name and labels. */
export function parsed(text: string): Map<string, number> {
  const lines = text.split("\n").filter((line) => line !== "" && !line.startsWith("#"));
  return new Map(
    lines.map((line) => {
      const at = line.lastIndexOf(" ");
      const value = line.slice(at + 1);
      return [line.slice(0, at), value === "+Inf" ? Number.POSITIVE_INFINITY : Number(value)];
    }),
  );
}

/** One number of a scrape. The name has no prefix, and has its labels if there are any. */
export async function valueOf(worker: { metrics(): Promise<string> }, name: string): Promise<number | undefined> {
  return parsed(await worker.metrics()).get(`sluice_${name}`);
}
