// The Node that everything runs on, ours too: peers declare 22.18 and newer, and a comparison wants one
// for all. An older one at hand only compiles and fetches the newer.
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const NEEDED = [22, 18];
const FETCHED = 24;

/** The path of a Node that is new enough: the one at hand, or one fetched from npm into `folder`. */
export function nodeFor(folder, version = process.versions.node) {
  if (isNewEnough(version)) return process.execPath;
  const system = process.platform === "win32" ? "win" : process.platform;
  const name = `node-${system}-${process.arch}`;
  const home = join(folder, `node-${FETCHED}`);
  const path = join(home, "node_modules", name, "bin", system === "win" ? "node.exe" : "node");
  if (!works(path)) fetchNode(home, `${name}@${FETCHED}`, version);
  if (works(path)) return path;
  throw new Error(`${name}@${FETCHED} was installed in ${home}, and does not run`);
}

export function isNewEnough(version) {
  const [major, minor] = version.split(".").map(Number);
  return major > NEEDED[0] || (major === NEEDED[0] && minor >= NEEDED[1]);
}

function works(path) {
  return existsSync(path) && spawnSync(path, ["--version"], { stdio: "ignore" }).status === 0;
}

function fetchNode(home, wanted, version) {
  process.stderr.write(`Node ${version} is too old for the peers: fetching ${wanted} (once)\n`);
  mkdirSync(home, { recursive: true });
  writeFileSync(join(home, "package.json"), '{ "private": true }\n');
  const flags = ["--silent", "--no-audit", "--no-fund", "--prefer-offline", "--no-workspaces"];
  const { status, error, stderr } = spawnSync("npm", ["install", ...flags, "--prefix", home, wanted], {
    cwd: home,
    env: cleanEnvironment(),
    stdio: ["ignore", "ignore", "pipe"],
  });
  if (status === 0) return;
  const why = error?.message ?? stderr.toString().trim();
  throw new Error(
    `the bench needs Node ${NEEDED.join(".")} or newer, and ${wanted} cannot be fetched from npm` +
      `${why === "" ? "" : ` (${why})`}. Run it with a newer Node.`,
  );
}

/** Nothing of the npm that runs us: it would install into our workspace. */
function cleanEnvironment() {
  const ours = /^(npm_(package|lifecycle|command|config_(local_prefix|prefix|workspace))|INIT_CWD)/;
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !ours.test(name)));
}
