import { readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { SluiceError } from "../core/error.js";
import { startEmbedded } from "../embedded/index.js";
import { surveySite } from "../embedded/site.js";

/** A PostgreSQL server for tests, which runs as long as a process uses it. */
export interface TestServer {
  readonly url: string;
  /** Ends this process's use of the server. The last process to do so stops it. */
  stop(): Promise<void>;
}

// Test data is not worth waiting for the disk. After a machine crash, half-written data is never read again: each boot
// uses a directory of its own, where the boot can be identified.
const HASTY = { fsync: "off", synchronous_commit: "off", full_page_writes: "off" };
const BOOT_FILE = "/proc/sys/kernel/random/boot_id";

let joined: Promise<TestServer> | null = null;

/**
 * The server that all test processes of this user share: the first starts it, the others join it, and the last stops
 * it. Its data stays until the next boot, so the next test run finds the template.
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

/** The server on which test databases are created: at url, else at DATABASE_URL, else a server of our own. */
export async function serverUrl(
  url: string | undefined,
  env: Readonly<Record<string, string | undefined>>,
): Promise<string> {
  const given = url ?? env["DATABASE_URL"];
  // Many shells use an empty variable to mean "not set".
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

/** Removes the directories of earlier boots, whose users are gone. */
function forgetOthers(cache: string, prefix: string, place: string): void {
  for (const name of readdirSync(cache)) {
    if (!name.startsWith(prefix) || name === place) continue;
    rmSync(join(cache, name), { recursive: true, force: true });
  }
}

function checkUrl(url: unknown): string {
  if (typeof url === "string" && /^postgres(ql)?:\/\//.test(url) && URL.canParse(url)) return url;
  // Omits the text itself, which may contain a password.
  throw new SluiceError("invalid_option", "the url of a test server must begin with postgres:// or postgresql://", {
    details: { option: "url" },
  });
}
