/** The lines of a scrape: what stands before the number, and the number. */
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

/** One number of a scrape; the name without its prefix, with its labels if it has any. */
export async function valueOf(worker: { metrics(): Promise<string> }, name: string): Promise<number | undefined> {
  return parsed(await worker.metrics()).get(`sluice_${name}`);
}
