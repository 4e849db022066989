import { settingsOf, type Settings } from "../client/settings.js";
import { readConfigFile } from "../config/file.js";
import { isSluiceError, SluiceError } from "../core/error.js";

/** The flags of a command that select the database. */
interface DatabaseFlags {
  readonly url?: string;
  readonly schema?: string;
}

/** Resolves a command's database. An error about a missing url names the command-line flag. */
export async function databaseSettings({ url, schema }: DatabaseFlags): Promise<Settings> {
  const layers = { env: process.env, file: await readConfigFile(undefined, process.env) };
  try {
    const flags = { ...(schema !== undefined && { schema }), ...(url !== undefined && { url }) };
    return settingsOf(flags, layers);
  } catch (e) {
    if (!isSluiceError(e, "missing_url")) throw e;
    throw new SluiceError(
      "missing_url",
      "no database is set: pass --url postgres://user:password@host/name, or set DATABASE_URL",
    );
  }
}
