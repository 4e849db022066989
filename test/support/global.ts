import { startEmbedded } from "../../src/embedded/index.js";

/** One server for the whole run. Its data is thrown away, so nothing waits for the disk. */
export default async function setup(): Promise<(() => Promise<void>) | void> {
  if (process.env.DATABASE_URL !== undefined) {
    process.env.SLUICE_TEST_URL = process.env.DATABASE_URL;
    return;
  }
  const server = await startEmbedded({
    settings: { fsync: "off", synchronous_commit: "off", full_page_writes: "off" },
  });
  process.env.SLUICE_TEST_URL = server.url;
  return () => server.stop();
}
