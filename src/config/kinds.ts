import { SluiceError } from "../core/error.js";
import { quote } from "../core/quote.js";

interface Common {
  readonly env: string;
  readonly help: string;
}

interface IntegerSetting extends Common {
  readonly kind: "integer";
  readonly min: number;
  readonly max: number;
  /** null: no default; `help` describes what happens then. */
  readonly default: number | false | null;
  /** Whether it may be `false`, which turns it off. */
  readonly off?: true;
}

interface BooleanSetting extends Common {
  readonly kind: "boolean";
  readonly default: boolean | null;
}

interface TextSetting extends Common {
  readonly kind: "text";
  readonly default: string | null;
  /** Throws a SluiceError if the value is not acceptable. */
  readonly check?: (label: string, value: unknown) => unknown;
  /** Masks the value for printing, if it contains a secret. */
  readonly mask?: (text: string) => string;
}

interface ChoiceSetting extends Common {
  readonly kind: "choice";
  readonly words: readonly string[];
  readonly default: string | null;
}

/** One setting: its allowed values, its environment variable, its default, and a line of help. */
export type Setting = IntegerSetting | BooleanSetting | TextSetting | ChoiceSetting;

interface TypeOfKind {
  integer: number;
  boolean: boolean;
  text: string;
  choice: string;
}

/** The type of a setting's value; includes undefined if there is no default. */
export type ValueOf<S extends Setting> =
  | (S extends { readonly off: true } ? false : never)
  | (S extends { readonly words: readonly (infer Word)[] } ? Word : TypeOfKind[S["kind"]])
  | (S["default"] extends null ? undefined : never);

/** Where a value was found, for errors. */
export interface Place {
  /** Such as "leaseMs", "LEASE_MS", "worker.lease_ms in sluice.toml". */
  readonly label: string;
  readonly details: Readonly<Record<string, unknown>>;
  /** The value comes from code. Its author knows the call, so errors need not name the place. */
  readonly inCode?: boolean;
}

const INTEGER = /^[+-]?\d{1,15}$/;
const BOOLEANS: Readonly<Record<string, boolean>> = {
  true: true,
  false: false,
  "1": true,
  "0": false,
};

/** Returns the value if the setting allows it, else throws `invalid_option` naming the place. */
export function checkValue(setting: Setting, value: unknown, place: Place): unknown {
  if (!fits(setting, value)) throw refusal(setting, value, place);
  if (setting.kind === "text") checkText(setting, value, place);
  // Negative zero would be printed and stored as another number.
  return value === 0 ? 0 : value;
}

/** Parses and checks a value from the environment. */
export function parseValue(setting: Setting, text: string, place: Place): unknown {
  return checkValue(setting, meantBy(setting, text), place);
}

/** The value that the text stands for, or the text itself if it stands for no acceptable value. */
function meantBy(setting: Setting, text: string): unknown {
  if (setting.kind === "boolean") return Object.hasOwn(BOOLEANS, text) ? BOOLEANS[text] : text;
  if (text === "false" && setting.kind === "integer" && setting.off) return false;
  return setting.kind === "integer" && INTEGER.test(text) ? Number(text) : text;
}

function fits(setting: Setting, value: unknown): boolean {
  switch (setting.kind) {
    case "integer":
      return isOff(setting, value) || (Number.isInteger(value) && within(setting, value as number));
    case "choice":
      return setting.words.some((word) => word === value);
    case "boolean":
      return typeof value === "boolean";
    default:
      // If there is a check, its error is more precise.
      return typeof value === "string" || setting.check !== undefined;
  }
}

function isOff({ off }: IntegerSetting, value: unknown): boolean {
  return off === true && value === false;
}

function within({ min, max }: IntegerSetting, value: number): boolean {
  return value >= min && value <= max;
}

function checkText({ check }: TextSetting, value: unknown, place: Place): void {
  const { label, details, inCode = false } = place;
  try {
    check?.(label, value);
  } catch (e) {
    if (!(e instanceof SluiceError) || inCode) throw e;
    const message = e.message.startsWith(label) ? e.message : `${label}: ${e.message}`;
    throw new SluiceError("invalid_option", message, { details: { ...details }, cause: e });
  }
}

/** The allowed values in words: "an integer from 1 to 64". */
function wanted(setting: Setting): string {
  switch (setting.kind) {
    case "integer":
      return `an integer from ${setting.min} to ${setting.max}${setting.off ? ", or false" : ""}`;
    case "choice":
      return setting.words.map((word) => quote(word)).join(" or ");
    case "boolean":
      return "true or false";
    default:
      return setting.kind;
  }
}

function refusal(setting: Setting, value: unknown, { label, details }: Place): SluiceError {
  const range = "min" in setting ? { min: setting.min, max: setting.max } : {};
  return new SluiceError("invalid_option", `${label} must be ${wanted(setting)}, not ${quote(value)}`, {
    details: { ...details, ...range },
  });
}
