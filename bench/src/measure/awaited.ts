import pg from "pg";
import { Sluice } from "../../../src/index.js";

/** Awaits the result of every task of the backlog through the public door; what it returns ends that. */
export async function awaitAll(url: string): Promise<() => Promise<void>> {
  const ids = await idsOf(url);
  const sluice = await Sluice.connect({ url, migrate: false });
  // A wait that ends with the measurement rejects as closed.
  const waits = Promise.allSettled(ids.map((id) => sluice.task(id).result()));
  return async () => {
    await sluice.close();
    await waits;
  };
}

async function idsOf(url: string): Promise<string[]> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  const { rows } = await client.query<{ id: string }>("select id::text from sluice.task");
  await client.end();
  return rows.map(({ id }) => id);
}
