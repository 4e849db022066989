import { getHeapSpaceStatistics, getHeapStatistics } from "node:v8";

const MIB = 1024 * 1024;
// What V8 takes for a semi-space if nobody says otherwise; the young generation has three.
const SEMI_SPACE_BYTES = 16 * MIB;
const SEMI_SPACES = 3;
const FLAG = /--max[-_]semi[-_]space[-_]size=(\d+)/;

/**
 * What the old generation may take: above it V8 ends the process, however much memory the machine has.
 * The limit that V8 tells is larger, by what the young generation may take. In a heap of 64 MB that would
 * be 112, of which it never gets to 80 %.
 */
export function heapLimitBytes(): number {
  const flags = `${process.env["NODE_OPTIONS"] ?? ""} ${process.execArgv.join(" ")}`;
  const megabytes = FLAG.exec(flags)?.[1];
  const semiSpace = megabytes === undefined ? SEMI_SPACE_BYTES : Number(megabytes) * MIB;
  const { heap_size_limit: limit } = getHeapStatistics();
  return Math.max(limit / 4, limit - SEMI_SPACES * semiSpace);
}

/** What the old generation takes, garbage that is not collected yet included. */
export function heapUsedBytes(): number {
  let used = 0;
  for (const { space_name: name, space_used_size: size } of getHeapSpaceStatistics())
    if (!name.startsWith("new_")) used += size;
  return used;
}
