import type pg from "pg";
import type { Database } from "./database.js";
import { unavailable } from "./errors.js";

/** Runs `use` on a connection of its own, which is closed afterwards. */
export async function connected<T>(db: Database, use: (client: pg.Client) => Promise<T>): Promise<T> {
  let client;
  try {
    // The constructor rejects a malformed address.
    client = db.client();
    client.on("error", () => {});
    await client.connect();
  } catch (e) {
    throw unavailable(`cannot connect: ${(e as Error).message}`, e);
  }
  try {
    return await use(client);
  } finally {
    await client.end();
  }
}
