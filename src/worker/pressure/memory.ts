import { readFileSync } from "node:fs";
import { freemem, totalmem } from "node:os";
import { join } from "node:path";
import { findGroups, limitOfGroups, percentOfGroups } from "./cgroup.js";
import { heapLimitBytes, heapUsedBytes } from "./heap.js";

/** How much of a bound is in use. */
export interface MemoryUse {
  readonly percent: number;
  readonly of: "cgroup" | "host" | "heap";
}

interface MemorySources {
  /** The root of the file system. */
  readonly root?: string;
  readonly hostBytes?: number;
  readonly heapPercent?: () => number;
}

/**
 * Reads how full memory is. The bound of the process is its control group's limit, or the host's memory if there is
 * none. V8 also has its own, mostly smaller limit, above which the process dies however much memory the machine has:
 * the fuller of the two counts. The groups are looked up once; their limits are read each time, because they may
 * change.
 */
export function memoryReader(sources: MemorySources = {}): () => MemoryUse {
  const { root = "/", hostBytes = totalmem(), heapPercent = heapReader() } = sources;
  const groups = findGroups(root);
  return () => {
    const heap: MemoryUse = { percent: heapPercent(), of: "heap" };
    const ofGroups = percentOfGroups(groups, hostBytes);
    const percent = ofGroups ?? percentOfHost(root, hostBytes);
    if (percent === null || percent < heap.percent) return heap;
    return { percent, of: ofGroups === null ? "host" : "cgroup" };
  };
}

// An input takes several times the size of its text while it is received, parsed and processed.
const PAYLOAD_SHARE = 1 / 8;

/**
 * How many bytes of payload may be in flight: at most an eighth of what the process may use at all. So a bound chosen
 * for a large machine does not kill a small container, or a small heap.
 */
export function payloadBytesFor(wanted: number, root = "/"): number {
  const bound = Math.min(heapLimitBytes(), limitOfGroups(findGroups(root)));
  return Math.max(1, Math.min(wanted, Math.floor(bound * PAYLOAD_SHARE)));
}

function heapReader(): () => number {
  const limit = heapLimitBytes();
  return () => (100 * heapUsedBytes()) / limit;
}

/** Null on macOS, which fills its memory with caches and does not report which of them it would drop. */
function percentOfHost(root: string, hostBytes: number): number | null {
  const available = availableBytes(root);
  return available === null ? null : (100 * (hostBytes - available)) / hostBytes;
}

function availableBytes(root: string): number | null {
  if (process.platform === "darwin") return null;
  try {
    const meminfo = readFileSync(join(root, "proc/meminfo"), "utf8");
    const kilobytes = /^MemAvailable:\s+(\d+) kB$/m.exec(meminfo)?.[1];
    if (kilobytes !== undefined) return Number(kilobytes) * 1024;
  } catch {
    // Not Linux.
  }
  return freemem();
}
