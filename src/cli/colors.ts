import { styleText } from "node:util";

type Style = "bold" | "dim" | "green" | "red" | "yellow" | "cyan" | "magenta";

/** Colours a text if its stream supports it: not in a file, and not if NO_COLOR is set. */
const paint =
  (style: Style, stream: NodeJS.WriteStream = process.stdout) =>
  (text: string): string =>
    styleText(style, text, { stream });

export const bold = paint("bold");
export const dim = paint("dim");
export const green = paint("green");
export const red = paint("red");
export const yellow = paint("yellow");
export const cyan = paint("cyan");
export const magenta = paint("magenta");
/** For text on standard error. */
export const onError = { red: paint("red", process.stderr), bold: paint("bold", process.stderr) };
