import { startEmbedded } from "../../../src/embedded/index.js";
import { findPostgres } from "./find.js";
import { startOwn } from "./own.js";
import { SETTINGS, type Server } from "./settings.js";

/** The given server, else an ordinary PostgreSQL of this machine, else the embedded one. */
export async function startServer(url: string | null): Promise<Server> {
  if (url !== null) return { url, about: "the server at --url, as it is set", pid: null, stop: async () => {} };
  const bin = findPostgres();
  if (bin !== null) return startOwn(bin);
  const embedded = await startEmbedded({ settings: SETTINGS });
  return {
    url: embedded.url,
    about: "the embedded PostgreSQL (publish numbers only from an installed one)",
    pid: embedded.pid,
    stop: () => embedded.stop(),
  };
}
