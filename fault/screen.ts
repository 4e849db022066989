// Progress: one line that is rewritten on a terminal, a line every five seconds elsewhere.
import type { Options } from "./options.js";

const PLAIN_EVERY_MS = 5_000;
const LIVE_EVERY_MS = 200;
const CLEAR_LINE = "\r\u001b[K";

export interface Screen {
  /** A line that stays. */
  print(text: string): void;
  /** Shows what `look` says, now and then. */
  follow(look: () => string): void;
  close(): void;
}

/** Progress goes to standard error, so that standard output has the report alone. */
export function openScreen({ json }: Pick<Options, "json">, out: NodeJS.WriteStream = process.stderr): Screen {
  const live = out.isTTY && !json;
  let timer: NodeJS.Timeout | undefined;
  const clear = live ? CLEAR_LINE : "";
  return {
    print: (text) => void out.write(`${clear}${text}\n`),
    follow: (look) => {
      clearInterval(timer);
      const width = (): number => (out.columns ?? 100) - 1;
      const show = (): void => void out.write(live ? `${clear}${look().slice(0, width())}` : `${look()}\n`);
      timer = setInterval(show, live ? LIVE_EVERY_MS : PLAIN_EVERY_MS);
    },
    close: () => {
      clearInterval(timer);
      out.write(clear);
    },
  };
}
