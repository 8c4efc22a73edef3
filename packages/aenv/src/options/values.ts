import { type EgressPolicy, egressPolicy, isObject, parseDuration, tryJson } from "@aenv/contract";
import { InvalidArgumentError } from "commander";

/** A whole number between two bounds, for commander. */
export function integer(min: number, max: number): (text: string) => number {
  return (text) => {
    const value = Number(text);
    if (text.trim() === "" || !Number.isInteger(value) || value < min || value > max) {
      throw new InvalidArgumentError(`It must be a whole number from ${min} to ${max}.`);
    }
    return value;
  };
}

/** A number between two bounds, for commander. */
export function number(min: number, max: number): (text: string) => number {
  return (text) => {
    const value = Number(text);
    if (text.trim() === "" || !Number.isFinite(value) || value < min || value > max) {
      throw new InvalidArgumentError(`It must be a number from ${min} to ${max}.`);
    }
    return value;
  };
}

/** Milliseconds of `30s`, `2m`, or of a bare number of seconds. */
export function duration(text: string): number {
  try {
    const ms = /^\d+(?:\.\d+)?$/.test(text) ? Number(text) * 1_000 : parseDuration(text);
    if (ms > 0) return ms;
  } catch {
    throw new InvalidArgumentError("Write a number and a unit, such as 30s, 5m or 1h30m.");
  }
  throw new InvalidArgumentError("It must be longer than 0.");
}

/** A JSON object, for commander. */
export function jsonObject(text: string): Record<string, unknown> {
  const value = tryJson(text);
  if (!isObject(value)) throw new InvalidArgumentError(`It must be a JSON object, such as '{"n": 3}'.`);
  return value;
}

/** `none`, `open`, or the destinations of an allow list, separated by commas. */
export function egress(text: string): EgressPolicy {
  const given = text === "none" || text === "open" ? text : { allow: text.split(",").map((one) => one.trim()) };
  const parsed = egressPolicy.safeParse(given);
  if (parsed.success) return parsed.data;
  throw new InvalidArgumentError("Write none, open, or destinations such as api.example.com:443,*.example.com,10.1.0.0/16:5432.");
}
