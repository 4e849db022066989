import { chmodSync, mkdirSync, mkdtempSync, realpathSync } from "node:fs";
import { join } from "node:path";
import { SluiceError, isSluiceError } from "../core/error.js";
import { silentLogger, type Logger } from "../core/ports.js";
import { ensureCluster, passwordOf, pgdataOf } from "./cluster.js";
import { leave, leaveAtExit, type Handle } from "./leave.js";
import { withLock } from "./lock.js";
import { addReference, register, sweep } from "./registry.js";
import { halt, findPostmaster, type Postmaster, launch, type ServerOptions } from "./server.js";
import { surveySite, type Site } from "./site.js";
import { until } from "./until.js";

export interface EmbeddedOptions {
  /**
   * Directory for the data. Processes that name the same directory share one server. Default: a temporary one, removed
   * on stop.
   */
  readonly dataDir?: string;
  /** Default: any free port. */
  readonly port?: number;
  /** Keep the server running when this process is the last to stop using it. */
  readonly persistent?: boolean;
  /** PostgreSQL settings. They apply only if this process starts the server. */
  readonly settings?: Readonly<Record<string, string>>;
  readonly logger?: Logger;
}

export interface Embedded {
  readonly url: string;
  readonly dataDir: string;
  readonly pid: number;
  stop(): Promise<void>;
}

const recoverWithinMs = 60_000;

/** Starts a real PostgreSQL server on this machine, or joins the one that already runs on `dataDir`. */
export async function startEmbedded(options: EmbeddedOptions = {}): Promise<Embedded> {
  try {
    return await start(options, options.logger ?? silentLogger);
  } catch (cause) {
    if (isSluiceError(cause)) throw cause;
    const where = options.dataDir === undefined ? "" : ` in ${options.dataDir}`;
    throw new SluiceError("embedded_failed", `Could not start PostgreSQL${where}: ${String(cause)}`, { cause });
  }
}

async function start(options: EmbeddedOptions, logger: Logger): Promise<Embedded> {
  refuse(options);
  const site = await surveySite(options.dataDir && pgdataOf(options.dataDir));
  const root = openRoot(site, options.dataDir);
  const { postmaster, handle } = await withLock(root, () => enter(site, root, options));
  leaveAtExit(handle);
  // Sweep only now: the server we joined may itself have been abandoned, and is in use again.
  await sweep(site, logger);
  logger.info("embedded PostgreSQL is ready", { port: postmaster.port, dataDir: root });
  return describe(handle, postmaster);
}

function refuse({ dataDir, persistent }: EmbeddedOptions): void {
  if (dataDir !== undefined || persistent !== true) return;
  throw new SluiceError("invalid_option", "A persistent server needs a dataDir");
}

function openRoot(site: Site, dataDir: string | undefined): string {
  // The server's user must pass through here to reach its data, but must not read our password.
  const mode = site.identity === undefined ? 0o700 : 0o711;
  const root = dataDir ?? mkdtempSync(join(site.cache, "run-"));
  if (dataDir === undefined) chmodSync(root, mode);
  else mkdirSync(root, { recursive: true, mode });
  return realpathSync(root);
}

async function enter(
  site: Site,
  root: string,
  options: EmbeddedOptions,
): Promise<{ postmaster: Postmaster; handle: Handle }> {
  const persistent = options.persistent === true;
  // Register before the server runs: from here on, a sweep finds it if this process is killed.
  if (!persistent) register(site.cache, root);
  await ensureCluster(site, root);
  const postmaster = (await joined(site, root, options)) ?? (await launch(site, root, options));
  const dropReference = addReference(root);
  return { postmaster, handle: { site, root, persistent, dropReference } };
}

async function joined(site: Site, root: string, { port }: ServerOptions): Promise<Postmaster | undefined> {
  const pgdata = pgdataOf(root);
  const running = findPostmaster(pgdata);
  if (running === undefined) return undefined;
  // We hold the lock, so no other process is stopping it: the one that began is dead.
  if (running.stopping) await halt({ ...site, pgdata });
  else if (port !== undefined && running.port !== port) {
    throw new SluiceError("embedded_failed", `A server already uses ${root}, on port ${running.port}`);
  }
  const settled = await until(recoverWithinMs, () => {
    const found = findPostmaster(pgdata);
    return found === undefined || found.ready ? { found } : undefined;
  });
  if (settled === undefined) throw new SluiceError("embedded_failed", `The server in ${root} did not become ready`);
  return settled.found;
}

function describe(handle: Handle, { pid, port }: Postmaster): Embedded {
  let stopped: Promise<void> | undefined;
  return {
    url: `postgresql://postgres:${passwordOf(handle.root)}@127.0.0.1:${port}/postgres`,
    dataDir: handle.root,
    pid,
    stop: () => (stopped ??= leave(handle)),
  };
}
