import { readFileSync, realpathSync, statSync } from "node:fs";
import { dirname } from "node:path";

/** The user that the server runs as. PostgreSQL refuses to run as root. */
export interface Identity {
  readonly uid: number;
  readonly gid: number;
}

/**
 * Undefined unless we are root. The owner of an existing data directory takes precedence, so that a directory created
 * earlier, by another user or before a `postgres` account existed, still opens.
 */
export function identityFor(pgdata?: string): Identity | undefined {
  if (process.getuid?.() !== 0) return undefined;
  return ownerOf(pgdata) ?? account("postgres") ?? account("nobody") ?? { uid: 65534, gid: 65534 };
}

function ownerOf(path?: string): Identity | undefined {
  const stat = path === undefined ? undefined : statSync(path, { throwIfNoEntry: false });
  return stat === undefined || stat.uid === 0 ? undefined : { uid: stat.uid, gid: stat.gid };
}

function account(name: string): Identity | undefined {
  const line = passwd().find((entry) => entry.startsWith(`${name}:`));
  const [, , uid, gid] = line?.split(":") ?? [];
  return uid === undefined || gid === undefined ? undefined : { uid: Number(uid), gid: Number(gid) };
}

function passwd(): string[] {
  try {
    return readFileSync("/etc/passwd", "utf8").split("\n");
  } catch {
    return [];
  }
}

/** Whether the identity may enter every directory on the path to this file or directory, and read it. */
export function canRead(path: string, identity: Identity): boolean {
  let at = realpathSync(path);
  if (!allows(at, identity, 4)) return false;
  while (dirname(at) !== at) {
    at = dirname(at);
    if (!allows(at, identity, 1)) return false;
  }
  return true;
}

function allows(path: string, identity: Identity, bits: number): boolean {
  const { uid, gid, mode } = statSync(path);
  const shift = uid === identity.uid ? 6 : gid === identity.gid ? 3 : 0;
  return ((mode >> shift) & bits) === bits;
}
