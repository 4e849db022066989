import { oncePerSecond, standardErrorLogger, type Logger } from "../core/ports.js";
import { connected } from "../postgres/connected.js";
import { Database } from "../postgres/database.js";
import { checkIsolation } from "../postgres/isolation.js";
import { Listener } from "../postgres/listen.js";
import { checkVersion, migrate } from "../postgres/migrate.js";
import { settingsOf, type ConnectOptions, type Settings } from "./settings.js";

/** An open connection's parts, as `open` makes them. */
export interface Connection {
  readonly db: Database;
  readonly listener: Listener | null;
  readonly logger: Logger;
  /** The same logger, for what may repeat itself: at most a line a second about the same trouble. */
  readonly log: Logger;
  readonly settings: Settings;
  readonly stopEmbedded: (() => Promise<void>) | null;
}

/** Connects, brings the schema up to date and begins to listen. */
export async function open(options: ConnectOptions): Promise<Connection> {
  const settings = settingsOf(options, process.env);
  const embedded = options.embedded === true ? await startEmbedded() : null;
  const url = embedded?.url ?? settings.url;
  const { pool, prepare, logger = standardErrorLogger } = options;
  const { schema, apiConnections } = settings;
  const db = new Database({ url, pool, schema, prepare, apiConnections });
  try {
    await bringUpToDate(db, options.migrate ?? true);
    const log = oncePerSecond(logger);
    const listener =
      options.listen === false ? null : new Listener(db, { url: options.listenUrl, log });
    await listener?.start();
    return { db, listener, logger, log, settings, stopEmbedded: embedded?.stop ?? null };
  } catch (e) {
    await db.close();
    await embedded?.stop();
    throw e;
  }
}

async function startEmbedded(): Promise<{ url: string; stop: () => Promise<void> }> {
  // Loaded only when asked for: a producer in production never pays for it.
  const { startEmbedded: start } = await import("../embedded/index.js");
  const server = await start();
  return { url: server.url, stop: () => server.stop() };
}

async function bringUpToDate(db: Database, run: boolean): Promise<void> {
  await connected(db, async (client) => {
    await checkIsolation(db, client);
    if (run) await migrate(client, { schema: db.schema });
    else await checkVersion(client, db.schema);
  });
}
