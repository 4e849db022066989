import { spawnTs } from "../support/process.js";

export interface Said {
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
}

/** The output and exit code of the command. DATABASE_URL is unset unless given. */
export async function sluice(
  args: readonly string[],
  env: NodeJS.ProcessEnv = {},
  heard: (out: string) => void = () => {},
): Promise<Said> {
  const quiet = { DATABASE_URL: undefined, NO_COLOR: "1", ...env };
  const { child, exit } = spawnTs("src/cli/main.ts", args, quiet);
  let [out, err] = ["", ""];
  child.stdout!.on("data", (chunk: Buffer) => heard((out += chunk.toString())));
  child.stderr!.on("data", (chunk: Buffer) => (err += chunk.toString()));
  return { code: await exit, out, err };
}
