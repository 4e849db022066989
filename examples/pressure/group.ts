import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";

/** A control group with a memory limit, as a container has one. */
export interface Group {
  /** Whoever writes a process id here moves it in. */
  readonly procs: string;
  /** When nobody is in it any more. */
  remove(): void;
}

interface Place {
  readonly folder: string;
  readonly top: string;
  readonly limit: string;
}

/** Makes one below our own, or as near to it as the system allows. Null where it allows none. */
export function makeGroup(limitBytes: number): Group | null {
  for (const { folder, top, limit } of places()) {
    for (let at = folder; at.startsWith(top); at = dirname(at)) {
      const made = tryAt(join(at, `sluice-${process.pid}`), limit, limitBytes);
      if (made !== null) return made;
    }
  }
  return null;
}

/** Our own groups: version 1 has one for memory, version 2 one for everything. */
function places(): Place[] {
  if (!existsSync("/proc/self/cgroup")) return [];
  const own = readFileSync("/proc/self/cgroup", "utf8");
  const v1 = /^\d+:(?:[^:]*,)?memory(?:,[^:]*)?:(.*)$/m.exec(own)?.[1];
  const v2 = /^0::(.*)$/m.exec(own)?.[1];
  const place = (top: string, path: string | undefined, limit: string): Place[] =>
    path === undefined ? [] : [{ top, folder: join(top, path), limit }];
  return [
    ...place("/sys/fs/cgroup/memory", v1, "memory.limit_in_bytes"),
    ...place("/sys/fs/cgroup", v2, "memory.max"),
  ];
}

function tryAt(folder: string, limit: string, limitBytes: number): Group | null {
  try {
    mkdirSync(folder);
  } catch {
    return null;
  }
  const remove = (): void => {
    // One that still empties itself cannot be removed just now; it is gone with the system at the latest.
    try {
      rmdirSync(folder);
    } catch {}
  };
  try {
    // The kernel puts the files there. Without them this is no control group, or none for memory.
    if (!existsSync(join(folder, limit))) throw new Error("no memory controller");
    writeFileSync(join(folder, limit), String(limitBytes));
    return { procs: join(folder, "cgroup.procs"), remove };
  } catch {
    remove();
    return null;
  }
}
