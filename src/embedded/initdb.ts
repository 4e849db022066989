import { randomBytes, randomUUID } from "node:crypto";
import { chownSync, closeSync, mkdirSync, openSync, rmSync, writeFileSync } from "node:fs";
import { SluiceError } from "../core/error.js";
import { spawnFailure, spawnOn, type Command } from "./spawn.js";

/** Makes a data directory and returns the superuser's password. */
export async function initdb(command: Command, durable: boolean): Promise<string> {
  const { pgdata, identity } = command;
  const password = randomBytes(24).toString("hex");
  const passwordFile = `${pgdata}.${randomUUID()}`;
  mkdirSync(pgdata, { mode: 0o700 });
  writeFileSync(passwordFile, password, { mode: 0o600 });
  if (identity !== undefined) {
    chownSync(pgdata, identity.uid, identity.gid);
    chownSync(passwordFile, identity.uid, identity.gid);
  }
  try {
    await run(command, passwordFile, durable);
    return password;
  } finally {
    rmSync(passwordFile, { force: true });
  }
}

async function run(command: Command, passwordFile: string, durable: boolean): Promise<void> {
  const windows = process.platform === "win32";
  // Through standard input, because the identity may not reach the file by name.
  const args = [`--pwfile=${windows ? passwordFile : "/dev/stdin"}`, "--username=postgres"];
  args.push("--auth=scram-sha-256", "--encoding=UTF8", "--locale=C");
  if (!durable) args.push("--no-sync");
  const input = openSync(passwordFile, "r");
  try {
    await finish(command, args, input);
  } finally {
    closeSync(input);
  }
}

async function finish(command: Command, args: string[], input: number): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    const child = spawnOn(command, "initdb", args, [input, "ignore", "pipe"]);
    let said = "";
    child.stderr?.on("data", (chunk: Buffer) => (said += chunk.toString()));
    child.once("error", (cause) => reject(spawnFailure(command, "initdb", cause)));
    child.once("close", (status) => {
      if (status === 0) resolve();
      else reject(new SluiceError("embedded_failed", `initdb ended with ${status}: ${said.trim()}`));
    });
  });
}
