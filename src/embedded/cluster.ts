import { randomBytes, randomUUID } from "node:crypto";
import { chownSync, closeSync, existsSync, mkdirSync, openSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { SluiceError } from "../core/error.js";
import { cached } from "./cache.js";
import { copyTree, hasCode, list, readText, writeWhole } from "./files.js";
import type { Site } from "./site.js";
import { spawnFailure, spawnOn, type Command } from "./spawn.js";

export const pgdataOf = (root: string): string => join(root, "pgdata");

/** Whether the root is one of our temporary directories, to be removed with the server. */
export function isEphemeral(cache: string, root: string): boolean {
  return dirname(root) === cache && basename(root).startsWith("run-");
}

export function passwordOf(root: string): string {
  return (readText(join(root, "password")) ?? "").trim();
}

/** Creates the data directory unless it exists. A crash on the way leaves no partial directory. */
export async function ensureCluster(site: Site, root: string): Promise<void> {
  if (existsSync(pgdataOf(root))) return;
  forgetPartial(root);
  const partial = join(root, `partial.${randomUUID()}`);
  const password = isEphemeral(site.cache, root)
    ? await fromTemplate(site, partial)
    : await initdb({ ...site, pgdata: partial }, true);
  writeWhole(join(root, "password"), password);
  renameSync(partial, pgdataOf(root));
}

/** A killed process leaves its initdb running: that one must never work under the same name as ours. */
function forgetPartial(root: string): void {
  for (const name of list(root).filter((entry) => entry.startsWith("partial."))) {
    try {
      rmSync(join(root, name), { recursive: true, force: true });
    } catch (error) {
      if (!hasCode(error, "ENOTEMPTY", "EBUSY")) throw error; // Still being filled.
    }
  }
}

/**
 * Ephemeral clusters are copies of one that was initialised once. They share its password, which only this user can
 * read; a data directory that the caller names gets a password of its own.
 */
async function fromTemplate(site: Site, target: string): Promise<string> {
  const name = `template-${site.version}-${site.identity?.uid ?? "own"}`;
  const template = await cached(site.cache, name, async (directory) => {
    const password = await initdb({ ...site, pgdata: join(directory, "pgdata") }, false);
    writeWhole(join(directory, "password"), password);
  });
  await copyTree(join(template, "pgdata"), target);
  return passwordOf(template);
}

/** Initialises a data directory and returns the superuser's password. */
async function initdb(command: Command, durable: boolean): Promise<string> {
  const { pgdata, identity } = command;
  const password = randomBytes(24).toString("hex");
  const passwordFile = `${pgdata}.${randomUUID()}`;
  mkdirSync(pgdata, { mode: 0o700 });
  writeFileSync(passwordFile, password, { mode: 0o600 });
  if (identity !== undefined) {
    chownSync(pgdata, identity.uid, identity.gid);
    chownSync(passwordFile, identity.uid, identity.gid);
  }
  try {
    await runInitdb(command, passwordFile, durable);
    return password;
  } finally {
    rmSync(passwordFile, { force: true });
  }
}

async function runInitdb(command: Command, passwordFile: string, durable: boolean): Promise<void> {
  const windows = process.platform === "win32";
  // Passed through standard input, because the identity may not be able to open the file by name.
  const args = [`--pwfile=${windows ? passwordFile : "/dev/stdin"}`, "--username=postgres"];
  args.push("--auth=scram-sha-256", "--encoding=UTF8", "--locale=C");
  if (!durable) args.push("--no-sync");
  const input = openSync(passwordFile, "r");
  try {
    await finish(command, args, input);
  } finally {
    closeSync(input);
  }
}

async function finish(command: Command, args: string[], input: number): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    const child = spawnOn(command, "initdb", args, [input, "ignore", "pipe"]);
    let said = "";
    child.stderr?.on("data", (chunk: Buffer) => (said += chunk.toString()));
    child.once("error", (cause) => reject(spawnFailure(command, "initdb", cause)));
    child.once("close", (status) => {
      if (status === 0) resolve();
      else reject(new SluiceError("embedded_failed", `initdb ended with ${status}: ${said.trim()}`));
    });
  });
}
