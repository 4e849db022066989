import { styleText } from "node:util";

type Style = "bold" | "dim" | "green" | "red";

/** Colours a text where its stream can show it: not into a file, and not where NO_COLOR is set. */
const paint =
  (style: Style, stream: NodeJS.WriteStream = process.stdout) =>
  (text: string): string =>
    styleText(style, text, { stream });

export const bold = paint("bold");
export const dim = paint("dim");
export const green = paint("green");
export const red = paint("red");
/** For what goes to the error output. */
export const onError = { red: paint("red", process.stderr), bold: paint("bold", process.stderr) };
