import { SluiceError } from "../core/error.js";
import { quote } from "../core/quote.js";

/** Checks the address, because the driver accepts any text and then tries to resolve a host named "base". */
export function checkUrl(option: string, url: unknown): string {
  if (typeof url === "string" && /^(postgres(ql)?:\/\/|socket:|\/)/.test(url)) return url;
  // Omits the text itself, which may contain a password.
  throw new SluiceError(
    "invalid_option",
    `${option} must be a string that begins with postgres:// or postgresql://` +
      (typeof url === "string" ? "" : `, not ${quote(url)}`),
    { details: { option } },
  );
}

/**
 * The address for display, without its password, wherever that is. Hides everything up to the last "@", because an
 * unescaped password may contain any character.
 */
export function maskUrl(url: string): string {
  return url
    .replace(/^([a-z]+:\/\/[^:@/]*):.*@/is, "$1:***@")
    .replaceAll(/([?&](?:password|sslpassword)=)[^&#]*/gi, "$1***");
}
