// A worker whose clock is an hour off. Only its wall clock: the monotonic one cannot be set on a real
// machine either.
import { execFile } from "node:child_process";
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import type { Fault } from "../stage.js";
import { untilBusy } from "./busy.js";

const hourMs = 3_600_000;
const offMsMin = hourMs / 2;

export const clockOff: Fault = {
  name: "clock-off",
  about: "an additional worker whose clock is an hour ahead or behind (libfaketime) runs for 3 s",
  disturbs: "worker",
  lacks: () => (faketime() === null ? LACKING : null),
  bite: async (stage, random) => {
    const library = faketime();
    if (library === null) throw new Error(LACKING);
    const env = {
      LD_PRELOAD: library,
      FAKETIME: random.pick(["+1h", "-1h"]),
      DONT_FAKE_MONOTONIC: "1",
      FAKETIME_DONT_FAKE_MONOTONIC: "1",
    };
    await checkOff(env);
    return stage.fleet.guest(env, async (member) => {
      const inHand = await untilBusy(stage, member, 5_000);
      await stage.pause(3_000);
      return inHand > 0 ? 1 : 0;
    });
  },
};

const LACKING = "libfaketime is missing: install the package `faketime` (Debian and Ubuntu)";

/** Where a Linux keeps the library: a folder of the machine's architecture, or none. */
export function faketime(roots = ["/usr/lib", "/usr/local/lib", "/usr/lib64"]): string | null {
  const folders = roots.filter(existsSync).flatMap((root) => [root, ...foldersOf(root)]);
  return folders.map((f) => join(f, "faketime/libfaketimeMT.so.1")).find(existsSync) ?? null;
}

function foldersOf(root: string): string[] {
  const inside = readdirSync(root, { withFileTypes: true });
  return inside.filter((entry) => entry.isDirectory()).map((entry) => join(root, entry.name));
}

/** A clock that is not off proves nothing, and the guest cannot tell. */
async function checkOff(env: Readonly<Record<string, string>>): Promise<void> {
  const { stdout } = await promisify(execFile)(process.execPath, ["-p", "Date.now()"], {
    env: { ...process.env, ...env },
  });
  if (Math.abs(Number(stdout) - Date.now()) < offMsMin)
    throw new Error(`libfaketime did not move the clock: ${stdout}`);
}
