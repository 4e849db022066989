interface Explained {
  readonly "QUERY PLAN": readonly [{ readonly Plan: Readonly<Record<string, number>> }];
}

/** Asks a session that has a transaction open. */
type Ask = (text: string, values?: unknown[]) => Promise<unknown[]>;

const LOOKS = 3;

/**
 * Pages that a statement and its functions read: its cost, independent of the load of the machine.
 * The least of three runs, each rolled back. Other sessions can only add to it: a migration of another database
 * makes every session of the server plan anew.
 */
export async function pages(ask: Ask, text: string, values: unknown[] = []): Promise<number> {
  let least = Infinity;
  for (let look = 0; look < LOOKS; look++) {
    await ask("savepoint before_look");
    const [row] = await ask(`explain (analyze, buffers, format json) ${text}`, values);
    await ask("rollback to before_look");
    const { Plan: plan } = (row as Explained)["QUERY PLAN"][0];
    least = Math.min(least, plan["Shared Hit Blocks"]! + plan["Shared Read Blocks"]!);
  }
  return least;
}
