import { getHeapSpaceStatistics, getHeapStatistics } from "node:v8";

const MIB = 1024 * 1024;
// V8's default size of a semi-space; the young generation has three.
const SEMI_SPACE_BYTES = 16 * MIB;
const SEMI_SPACES = 3;
const FLAG = /--max[-_]semi[-_]space[-_]size=(\d+)/;

/**
 * The limit of the old generation: above it V8 ends the process, however much memory the machine has. The limit that V8
 * reports is larger, by the size of the young generation. For a heap of 64 MB it would be 112 MB, and usage would never
 * reach 80 % of it.
 */
export function heapLimitBytes(): number {
  const flags = `${process.env["NODE_OPTIONS"] ?? ""} ${process.execArgv.join(" ")}`;
  const megabytes = FLAG.exec(flags)?.[1];
  const semiSpace = megabytes === undefined ? SEMI_SPACE_BYTES : Number(megabytes) * MIB;
  const { heap_size_limit: limit } = getHeapStatistics();
  return Math.max(limit / 4, limit - SEMI_SPACES * semiSpace);
}

/** The size of the old generation, including garbage that is not collected yet. */
export function heapUsedBytes(): number {
  let used = 0;
  for (const { space_name: name, space_used_size: size } of getHeapSpaceStatistics())
    if (!name.startsWith("new_")) used += size;
  return used;
}
