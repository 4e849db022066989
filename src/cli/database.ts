import { settingsOf, type Settings } from "../client/settings.js";
import { readConfigFile } from "../config/file.js";
import { isSluiceError, SluiceError } from "../core/error.js";

/** What the flags of a command say about the database. */
interface DatabaseFlags {
  readonly url?: string;
  readonly schema?: string;
}

/** Where a command finds the database. What is missing is told in the words of the command line. */
export async function databaseSettings({ url, schema }: DatabaseFlags): Promise<Settings> {
  const layers = { env: process.env, file: await readConfigFile(undefined, process.env) };
  try {
    const flags = { ...(schema !== undefined && { schema }), ...(url !== undefined && { url }) };
    return settingsOf(flags, layers);
  } catch (e) {
    if (!isSluiceError(e, "missing_url")) throw e;
    throw new SluiceError(
      "missing_url",
      "which database? Pass --url postgres://user:password@host/name, or set DATABASE_URL",
    );
  }
}
