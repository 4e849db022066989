import { startEmbedded } from "../../src/embedded/index.js";
import { translate } from "./javascript.js";

/** What all tests of a run share: a server, and the sources as JavaScript. */
export default async function setup(): Promise<() => Promise<void>> {
  const stop = await serve();
  const { folder, remove } = await translate();
  process.env.SLUICE_TEST_JS = folder;
  return async () => {
    await remove();
    await stop();
  };
}

/** One server for the whole run. Its data is discarded, so nothing waits for the disk. */
async function serve(): Promise<() => Promise<void>> {
  if (process.env.DATABASE_URL !== undefined) {
    process.env.SLUICE_TEST_URL = process.env.DATABASE_URL;
    return async () => {};
  }
  const server = await startEmbedded({
    settings: { fsync: "off", synchronous_commit: "off", full_page_writes: "off" },
  });
  process.env.SLUICE_TEST_URL = server.url;
  return () => server.stop();
}
