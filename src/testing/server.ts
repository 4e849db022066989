import { readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { SluiceError } from "../core/error.js";
import { startEmbedded } from "../embedded/index.js";
import { surveySite } from "../embedded/site.js";

/** A PostgreSQL server for tests, for as long as this process uses it. */
export interface TestServer {
  readonly url: string;
  /** Gives it up. The last process that does so stops it. */
  stop(): Promise<void>;
}

// Nothing here is worth waiting for the disk. What a machine that goes down leaves half written is
// never looked at again: each boot has a place of its own, where it can be told.
const HASTY = { fsync: "off", synchronous_commit: "off", full_page_writes: "off" };
const BOOT_FILE = "/proc/sys/kernel/random/boot_id";

let joined: Promise<TestServer> | null = null;

/**
 * The server that all test processes of this user share: started by the first, joined by the others,
 * stopped by the last. Its data stays until the next boot, so the next run of tests finds the template made.
 */
export async function testServer(): Promise<TestServer> {
  const { cache, version, identity } = await surveySite();
  const prefix = `testing-${version}-${identity?.uid ?? "own"}-`;
  const boot = bootId();
  const place = prefix + (boot ?? "any");
  forgetOthers(cache, prefix, place);
  const settings = boot === null ? {} : HASTY;
  const server = await startEmbedded({ dataDir: join(cache, place), settings });
  return { url: server.url, stop: () => server.stop() };
}

/** Where the databases of tests are made: at url, else at DATABASE_URL, else on a server of our own. */
export async function serverUrl(
  url: string | undefined,
  env: Readonly<Record<string, string | undefined>>,
): Promise<string> {
  const given = url ?? env["DATABASE_URL"];
  // An empty variable is how many a shell says "not set".
  if (given !== undefined && given !== "") return checkUrl(given);
  const server = (joined ??= testServer());
  try {
    return (await server).url;
  } catch (e) {
    if (joined === server) joined = null;
    throw e;
  }
}

function bootId(): string | null {
  try {
    return readFileSync(BOOT_FILE, "utf8").trim().slice(0, 8);
  } catch {
    return null;
  }
}

/** What an earlier boot left behind: whoever used it is gone. */
function forgetOthers(cache: string, prefix: string, place: string): void {
  for (const name of readdirSync(cache)) {
    if (!name.startsWith(prefix) || name === place) continue;
    rmSync(join(cache, name), { recursive: true, force: true });
  }
}

function checkUrl(url: unknown): string {
  if (typeof url === "string" && /^postgres(ql)?:\/\//.test(url) && URL.canParse(url)) return url;
  // Not the text itself: it may hold a password.
  throw new SluiceError("invalid_option", "the url of a test server must begin with postgres:// or postgresql://", {
    details: { option: "url" },
  });
}
