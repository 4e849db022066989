// Where the picture goes: redrawn in place on a terminal, a line a second elsewhere.
import pc from "picocolors";
import { picture, stamp, summary, type Happening, type Look } from "./view.js";

export interface Screen {
  readonly colors: ReturnType<typeof pc.createColors>;
  look(look: Look): void;
  /** Something worth a line of its own. */
  tell(seconds: number, text: string): void;
  /** Lines that stay. */
  print(lines: readonly string[]): void;
  close(): void;
}

const HAPPENINGS_MAX = 8;
// Title, picture and the line of the cursor.
const ROWS_MIN = 24;
const PLAIN_EVERY_SECONDS = 1;

export function openScreen(out: NodeJS.WriteStream, env: NodeJS.ProcessEnv): Screen {
  const plain = !out.isTTY || !!env["NO_COLOR"] || !!env["CI"] || env["TERM"] === "dumb";
  return plain || out.rows < ROWS_MIN ? new PlainScreen(out) : new LiveScreen(out);
}

class PlainScreen implements Screen {
  readonly colors = pc.createColors(false);
  readonly #out: NodeJS.WritableStream;
  #shownAt = Number.NEGATIVE_INFINITY;

  constructor(out: NodeJS.WritableStream) {
    this.#out = out;
  }

  look(look: Look): void {
    if (look.seconds - this.#shownAt < PLAIN_EVERY_SECONDS) return;
    this.#shownAt = look.seconds;
    this.print([summary(look)]);
  }

  tell(seconds: number, text: string): void {
    this.print([`${stamp(seconds)}  ${text}`]);
  }

  print(lines: readonly string[]): void {
    this.#out.write(lines.map((line) => `${line}\n`).join(""));
  }

  close(): void {}
}

const HIDE_CURSOR = "\u001b[?25l";
const SHOW_CURSOR = "\u001b[?25h";
const CLEAR_TO_END_OF_LINE = "\u001b[K";
const NO_WRAP = "\u001b[?7l";
const WRAP = "\u001b[?7h";

class LiveScreen implements Screen {
  readonly colors = pc.createColors(true);
  readonly #out: NodeJS.WriteStream;
  readonly #happenings: Happening[] = [];
  readonly #restore = (): void => void this.#out.write(SHOW_CURSOR);
  #last: Look | null = null;
  #drawnLines = 0;

  constructor(out: NodeJS.WriteStream) {
    this.#out = out;
    out.write(HIDE_CURSOR);
    process.once("exit", this.#restore);
  }

  look(look: Look): void {
    this.#last = look;
    this.#draw(look);
  }

  tell(seconds: number, text: string): void {
    this.#happenings.push({ seconds, text });
    if (this.#happenings.length > HAPPENINGS_MAX) this.#happenings.shift();
    if (this.#last !== null) this.#draw(this.#last);
  }

  print(lines: readonly string[]): void {
    this.#drawnLines = 0;
    this.#out.write(lines.map((line) => `${line}\n`).join(""));
  }

  close(): void {
    process.off("exit", this.#restore);
    this.#restore();
  }

  #draw(look: Look): void {
    const lines = picture(look, this.#happenings, this.colors);
    const up = this.#drawnLines === 0 ? "" : `\r\u001b[${this.#drawnLines}A`;
    const text = lines.map((line) => `${line}${CLEAR_TO_END_OF_LINE}\n`).join("");
    // Lines longer than the terminal is wide are cut, or the next picture would not meet this one.
    this.#out.write(NO_WRAP + up + text + WRAP);
    this.#drawnLines = lines.length;
  }
}
