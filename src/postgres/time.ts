/**
 * A time in the format of `to_json(time)`. The server writes a plain time in the DateStyle of the session, which a role
 * may set to one that the driver cannot parse; in JSON it is always ISO 8601.
 */
export type TimeText = string;

export function dateOf(text: TimeText): Date;
export function dateOf(text: TimeText | null): Date | null;
export function dateOf(text: TimeText | null): Date | null {
  return text === null ? null : new Date(text);
}
