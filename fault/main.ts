// npm run fault: start reading in run.ts.
import { writeFileSync } from "node:fs";
import { readOptions, type Options } from "./options.js";
import { plot } from "./plot.js";
import { run } from "./run.js";
import { openScreen } from "./screen.js";
import { figuresOf, table } from "./verdict.js";

async function main(options: Options): Promise<number> {
  const screen = openScreen(options);
  const interrupted = new AbortController();
  for (const signal of ["SIGINT", "SIGTERM"] as const) {
    process.once(signal, () => interrupted.abort(new Error(`ended by ${signal}`)));
  }
  try {
    screen.print(`seed ${options.seed}, ${options.seconds} s, ${options.faults.length} faults`);
    const played = await run(options, screen, interrupted.signal);
    screen.close();
    const figures = figuresOf(options, played);
    const text = table(figures);
    (options.json ? process.stderr : process.stdout).write(`${text}\n`);
    const json = JSON.stringify(figures);
    if (options.report !== null) writeFileSync(options.report, `${json}\n`);
    if (options.svg !== null) writeFileSync(options.svg, plot(played, options));
    if (options.json) process.stdout.write(`${json}\n`);
    return figures.ok ? 0 : 1;
  } finally {
    screen.close();
  }
}

const options = readOptions(process.argv.slice(2));
try {
  process.exitCode = await main(options);
} catch (e) {
  process.stderr.write(`fault: ${e instanceof Error ? e.message : String(e)}\n`);
  process.exitCode = 1;
}
// What an interrupted run has under way must not keep the process.
process.exit();
