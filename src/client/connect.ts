import type pg from "pg";
import { apiShare } from "../config/connections.js";
import { readConfigFile } from "../config/file.js";
import { SluiceError } from "../core/error.js";
import { oncePerSecond, standardErrorLogger, type Logger, type ThrottledLogger } from "../core/ports.js";
import { connected } from "../postgres/connected.js";
import { Database } from "../postgres/database.js";
import { checkEncoding } from "../postgres/encoding.js";
import { checkIsolation } from "../postgres/isolation.js";
import { Listener } from "../postgres/listen.js";
import { checkVersion, migrate } from "../postgres/migrate.js";
import { loadApi } from "../trace/api.js";
import { loggerOf } from "./logger.js";
import { settingsOf, type ConnectOptions, type Settings } from "./settings.js";

/** The parts of an open connection, as created by `open`. */
export interface Connection {
  readonly db: Database;
  readonly listener: Listener | null;
  readonly logger: Logger;
  /** The same logger for messages that may repeat: at most one line per second about the same problem. */
  readonly log: ThrottledLogger;
  readonly settings: Settings;
  /** The URL of the server that `embedded: true` started; null without one. */
  readonly embeddedUrl: string | null;
  readonly stopEmbedded: (() => Promise<void>) | null;
}

/** Starts a PostgreSQL server for `embedded: true`. Injected, so that a client alone does not include one. */
type StartServer = () => Promise<{ readonly url: string; stop(): Promise<void> }>;

/** Connects, brings the schema up to date and starts listening. */
export async function open(options: ConnectOptions, startServer: StartServer = refuseEmbedded): Promise<Connection> {
  const layers = { env: process.env, file: await readConfigFile(options.config, process.env) };
  const settings = settingsOf(options, layers);
  if (settings.tracing) await loadApi();
  const embedded = options.embedded === true ? await startServer() : null;
  const url = embedded?.url ?? settings.url;
  const logger = options.logger === undefined ? standardErrorLogger : loggerOf(options.logger);
  const { schema, prepare, listen, listenUrl } = settings;
  const pool = options.pool as pg.Pool | undefined;
  const apiConnections = apiShare(settings) - (listen ? 1 : 0);
  const db = new Database({ url, pool, schema, prepare, apiConnections });
  try {
    await bringUpToDate(db, settings.migrate);
    const log = oncePerSecond(logger);
    const listener = listen ? new Listener(db, { url: listenUrl, log }) : null;
    await listener?.start();
    if (embedded !== null) logger.info("an embedded PostgreSQL was started", { url: embedded.url });
    return {
      db,
      listener,
      logger,
      log,
      settings,
      embeddedUrl: embedded?.url ?? null,
      stopEmbedded: embedded === null ? null : () => embedded.stop(),
    };
  } catch (e) {
    await db.close();
    await embedded?.stop();
    throw e;
  }
}

function refuseEmbedded(): never {
  throw new SluiceError(
    "embedded_unsupported",
    'sluice/client has no embedded PostgreSQL: connect with Sluice from "sluice", or pass the url from ' +
      'startEmbedded() of "sluice/embedded"',
    { details: { option: "embedded" } },
  );
}

async function bringUpToDate(db: Database, run: boolean): Promise<void> {
  await connected(db, async (client) => {
    await checkIsolation(db, client);
    await checkEncoding(db, client);
    if (run) await migrate(client, { schema: db.schema, beside: (use) => connected(db, use) });
    else await checkVersion(client, db.schema);
  });
}
