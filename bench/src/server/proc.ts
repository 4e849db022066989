import { readdirSync, readFileSync } from "node:fs";

/** Of a process, from /proc: times in ms. */
interface Times {
  readonly parent: number;
  readonly ownMs: number;
  /** Of children that have ended and were waited for. */
  readonly childrenMs: number;
}

// USER_HZ, which Linux has fixed at 100 wherever it shows times to programs.
const MS_PER_TICK = 10;

// A child that ends while we look would be missed or counted twice: then we look again.
const LOOKS_MAX = 10;

/**
 * CPU time of a server: its first process, the children that live, and those that have ended. A child
 * that ends between two looks moves from the second to the third, so differences stay right. Null where
 * there is no /proc.
 */
export function treeCpuMs(pid: number): number | null {
  for (let looks = 0; looks < LOOKS_MAX; looks++) {
    const before = timesOf(String(pid));
    const living = livingMs(pid);
    const after = timesOf(String(pid));
    if (before === null || living === null || after === null) return null;
    if (before.childrenMs === after.childrenMs) return after.ownMs + after.childrenMs + living;
  }
  return null;
}

function livingMs(parent: number): number | null {
  try {
    const all = readdirSync("/proc").filter((name) => /^\d+$/.test(name));
    const children = all.map((name) => timesOf(name)).filter((times) => times?.parent === parent);
    return children.reduce((sum, times) => sum + times!.ownMs + times!.childrenMs, 0);
  } catch {
    return null;
  }
}

function timesOf(pid: string): Times | null {
  try {
    return parseStat(readFileSync(`/proc/${pid}/stat`, "utf8"));
  } catch {
    // It has ended since we looked.
    return null;
  }
}

/** The name of a program stands in brackets and may hold anything, so we count from the last one. */
export function parseStat(text: string): Times {
  const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
  const at = (field: number): number => Number(fields[field - 3]) * MS_PER_TICK;
  return { parent: Number(fields[1]), ownMs: at(14) + at(15), childrenMs: at(16) + at(17) };
}
