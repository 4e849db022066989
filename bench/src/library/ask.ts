import pg from "pg";

/** Asks a database for one number, on a connection of its own. */
export async function askNumber(url: string, text: string): Promise<number> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    const { rows } = await client.query<{ n: number }>(text);
    return rows[0]!.n;
  } finally {
    await client.end();
  }
}
