import { spawn } from "node:child_process";
import { accessSync, constants, existsSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { homedir, tmpdir, userInfo } from "node:os";
import { dirname, join } from "node:path";

export interface Ended {
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
}

/** Runs a command to its end. */
export function run(
  command: string,
  args: readonly string[],
  options: { readonly cwd: string; readonly env?: NodeJS.ProcessEnv },
): Promise<Ended> {
  const env = { ...cleanEnvironment(), ...options.env };
  const child = spawn(command, args, { cwd: options.cwd, env, stdio: ["ignore", "pipe", "pipe"] });
  let [out, err] = ["", ""];
  child.stdout.on("data", (chunk: Buffer) => (out += chunk.toString()));
  child.stderr.on("data", (chunk: Buffer) => (err += chunk.toString()));
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (code) => resolve({ code, out, err }));
  });
}

/** Runs npm and returns its output. A failure throws an error with all of its output. */
export async function npm(cwd: string, ...args: string[]): Promise<string> {
  const { code, out, err } = await run("npm", args, { cwd, env: npmSettings() });
  if (code !== 0) throw new Error(`npm ${args.join(" ")} ended with ${code}:\n${err}\n${out}`);
  return out;
}

/** A folder outside the repository, from which our own node_modules cannot be resolved by accident. */
export function scratch(): { readonly path: string; remove(): void } {
  const base = [tmpdir(), "/tmp", "/var/tmp"].find((path) => isWritable(path) && isBare(path));
  if (base === undefined) throw new Error("TMPDIR must not be below a folder with node_modules");
  const path = mkdtempSync(join(base, "sluice-package-"));
  return { path, remove: () => rmSync(path, { recursive: true, force: true }) };
}

function isBare(path: string): boolean {
  if (existsSync(join(path, "node_modules"))) return false;
  return dirname(path) === path || isBare(dirname(path));
}

/** The environment of a terminal: no database, and no variables of the npm or vitest that runs the tests. */
function cleanEnvironment(): NodeJS.ProcessEnv {
  const ours =
    /^(npm_(package|lifecycle|command|config_local_prefix|config_prefix)|INIT_CWD|DATABASE_URL|NODE_ENV|NODE_OPTIONS)/;
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !ours.test(name)));
}

function npmSettings(): NodeJS.ProcessEnv {
  return {
    npm_config_audit: "false",
    npm_config_fund: "false",
    npm_config_update_notifier: "false",
    npm_config_prefer_offline: "true",
    ...(isWritable(homedir()) ? {} : { npm_config_cache: ownCache() }),
  };
}

/** A cache for users without a home directory, shared by all runs so that only the first one downloads. */
function ownCache(): string {
  const path = join(tmpdir(), `sluice-npm-${userInfo().uid}`);
  mkdirSync(path, { recursive: true, mode: 0o700 });
  return path;
}

function isWritable(path: string): boolean {
  try {
    accessSync(path, constants.W_OK);
    return true;
  } catch {
    return false;
  }
}
