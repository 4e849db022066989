import { locate, runnable } from "./binaries.js";
import { openCache } from "./cache.js";
import { identityFor, type Identity } from "./identity.js";

/** What this machine provides: binaries that run, the user to run them as, and a directory for our files. */
export interface Site {
  readonly bin: string;
  readonly cache: string;
  readonly identity: Identity | undefined;
  readonly version: string;
}

export async function surveySite(pgdata?: string): Promise<Site> {
  const installed = locate();
  const identity = identityFor(pgdata);
  const cache = openCache(identity);
  return {
    bin: await runnable(installed, cache, identity),
    cache,
    identity,
    version: installed.version,
  };
}
