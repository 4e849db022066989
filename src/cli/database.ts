import { settingsOf, type Settings } from "../client/settings.js";
import { isSluiceError, SluiceError } from "../core/error.js";

/** Where a command finds the database. What is missing is told in the words of the command line. */
export function databaseSettings(url: string | undefined, schema: string): Settings {
  try {
    return settingsOf({ schema, ...(url === undefined ? {} : { url }) }, process.env);
  } catch (e) {
    if (!isSluiceError(e, "missing_url")) throw e;
    throw new SluiceError(
      "missing_url",
      "which database? Pass --url postgres://user:password@host/name, or set DATABASE_URL",
    );
  }
}
