// Where the demo plays: a database, a schema for the queue, and one for the log.
import { randomBytes } from "node:crypto";
import { startEmbedded } from "../../src/embedded/index.js";
import { Sluice } from "../../src/index.js";
import { Log } from "./log.js";

export interface Stage {
  readonly url: string;
  readonly schema: string;
  readonly logSchema: string;
  readonly sluice: Sluice;
  readonly log: Log;
  /** Which server this is, in words. */
  readonly server: string;
  /** Removes what the demo made; what was there before stays. */
  close(): Promise<void>;
}

export async function openStage(asked: string | undefined): Promise<Stage> {
  const url = process.env["DATABASE_URL"] || undefined;
  const embedded = url === undefined ? await startEmbedded() : null;
  try {
    const stage = await setUp(url ?? embedded!.url, asked);
    return {
      ...stage,
      server: `PostgreSQL ${await stage.log.serverVersion()}, ${embedded === null ? "at DATABASE_URL" : "embedded"}`,
      close: async () => {
        await stage.close();
        await embedded?.stop();
      },
    };
  } catch (e) {
    await embedded?.stop();
    throw e;
  }
}

async function setUp(url: string, asked: string | undefined): Promise<Omit<Stage, "server">> {
  const schema = asked ?? `sluice_demo_${randomBytes(4).toString("hex")}`;
  const logSchema = `${schema}_log`;
  const log = Log.open(url, logSchema);
  const stays = await log.exists(schema);
  const sluice = await Sluice.connect({ url, schema });
  const close = async (): Promise<void> => {
    await sluice.close();
    await log.drop(logSchema);
    if (!stays) await log.drop(schema);
    await log.close();
  };
  await log.create();
  return { url, schema, logSchema, sluice, log, close };
}
