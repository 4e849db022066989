import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";

/** A control group of this process, with the files that show its limits and usage. */
interface Group {
  readonly limits: readonly string[];
  readonly used: string;
  readonly stat: string;
  /** File cache, which the kernel drops first when memory gets short, and which is no pressure. */
  readonly droppable: RegExp;
}

interface Mount {
  readonly version: 1 | 2;
  /** Which group is mounted, and where. */
  readonly root: string;
  readonly at: string;
}

// Groups are nested a few levels deep. This bounds the walk, whatever a file contains.
const DEPTH_MAX = 32;

/**
 * The groups that bound this process's memory, from its own upwards: each may have a limit, and the tightest counts.
 * `root` is the root of the file system.
 */
export function findGroups(root = "/"): Group[] {
  const own = read(join(root, "proc/self/cgroup"))?.split("\n") ?? [];
  const paths = {
    1: pathOf(own, /^\d+:(?:[^:]*,)?memory(?:,[^:]*)?:(.*)$/),
    2: pathOf(own, /^0::(.*)$/),
  };
  return mountsOf(read(join(root, "proc/self/mountinfo")) ?? "").flatMap(({ version, root: top, at }) => {
    const path = paths[version];
    if (path === null) return [];
    return upwards(below(top, path))
      .map((folder) => groupAt(version, join(root, at, folder)))
      .filter(({ limits }) => limits.length > 0);
  });
}

/** How full the tightest group is, in percent; null if no group has a limit below the host's memory. */
export function percentOfGroups(groups: readonly Group[], hostBytes: number): number | null {
  let most: number | null = null;
  for (const group of groups) {
    const limit = limitOf(group);
    const used = limit < hostBytes ? numberIn(group.used) : null;
    if (used === null) continue;
    const droppable = Number(group.droppable.exec(read(group.stat) ?? "")?.[1] ?? 0);
    // Nothing fits into a limit of 0.
    const percent = limit > 0 ? (100 * Math.max(0, used - droppable)) / limit : 100;
    most = Math.max(most ?? 0, percent);
  }
  return most;
}

/** The tightest limit, in bytes; infinite if there is none. */
export function limitOfGroups(groups: readonly Group[]): number {
  return Math.min(Number.POSITIVE_INFINITY, ...groups.map(limitOf));
}

function limitOf({ limits }: Group): number {
  return Math.min(...limits.map((file) => numberIn(file) ?? Number.POSITIVE_INFINITY));
}

function groupAt(version: 1 | 2, folder: string): Group {
  const file = (name: string): string => join(folder, name);
  const [limits, used, droppable] =
    version === 2
      ? // Above memory.high the kernel reclaims memory and slows this process down, so it acts as a limit already.
        [["memory.max", "memory.high"], "memory.current", /^inactive_file (\d+)$/m]
      : [["memory.limit_in_bytes"], "memory.usage_in_bytes", /^total_inactive_file (\d+)$/m];
  return {
    limits: limits.map(file).filter((path) => existsSync(path)),
    used: file(used),
    stat: file("memory.stat"),
    droppable,
  };
}

/** Line format: fields, then " - ", type, source and options. */
function mountsOf(mountinfo: string): Mount[] {
  return mountinfo.split("\n").flatMap((line): Mount[] => {
    const [fields = "", kind = ""] = line.split(" - ");
    const [, , , root = "/", at = ""] = fields.split(" ");
    const [type, , options = ""] = kind.split(" ");
    if (type === "cgroup2") return [{ version: 2, root, at }];
    const memory = type === "cgroup" && options.split(",").includes("memory");
    return memory ? [{ version: 1, root, at }] : [];
  });
}

function pathOf(lines: readonly string[], form: RegExp): string | null {
  for (const line of lines) {
    const path = form.exec(line)?.[1];
    if (path !== undefined) return path;
  }
  return null;
}

/** A container may mount only its own part of the tree, while the path is relative to the host's root. */
function below(top: string, path: string): string {
  if (top === "/") return path;
  return path === top || path.startsWith(`${top}/`) ? path.slice(top.length) : "";
}

function upwards(path: string): string[] {
  const parts = path.split("/").filter((part) => part !== "" && part !== "..");
  const depth = Math.min(parts.length, DEPTH_MAX);
  return Array.from({ length: depth + 1 }, (_, i) => parts.slice(0, depth - i).join("/"));
}

/** Null for a value that is not a number, such as the "max" of a group without a limit. */
function numberIn(file: string): number | null {
  const text = read(file)?.trim() ?? "";
  return /^\d+$/.test(text) ? Number(text) : null;
}

/** Null if the file cannot be read: a group can be removed at any moment, and files can be hidden. */
function read(file: string): string | null {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return null;
  }
}
