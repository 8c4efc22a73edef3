import * as z from "zod";
import { nearestName } from "./nearest.ts";

/**
 * Size limits for the fields of a request. Stored fields are read with every list, so they have to be short. A snapshot is passed
 * on and never stored, so only the limit of the whole body applies to it.
 */
export const fieldLimits = {
  /** A reference such as `name@version`, a data source, an image, a path. */
  referenceLength: 1_024,
  /** An owner, a task's id. */
  nameLength: 256,
  /** A duration, a quantity such as `2Gi`. */
  shortLength: 64,
  labels: { count: 64, nameLength: 128, valueLength: 256 },
  arguments: { count: 256, length: 8_192, totalBytes: 64 * 1_024 },
  variables: { count: 1_000, nameLength: 256, totalBytes: 256 * 1_024 },
} as const;

/** A string with a maximum length. */
export function text(maxLength: number): z.ZodString {
  return z.string().max(maxLength);
}

/** Labels of an instance. */
export const labels = z
  .record(text(fieldLimits.labels.nameLength), text(fieldLimits.labels.valueLength))
  .refine((value) => Object.keys(value).length <= fieldLimits.labels.count, {
    message: `must have at most ${fieldLimits.labels.count} entries`,
  });

/** Arguments of an instance. */
export const startArguments = z
  .array(text(fieldLimits.arguments.length))
  .max(fieldLimits.arguments.count)
  .refine((value) => byteLengthOf(value) <= fieldLimits.arguments.totalBytes, {
    message: `must have at most ${fieldLimits.arguments.totalBytes} bytes in all`,
  });

/** Variables of an instance or a service. Those that the platform adds do not count. */
export const environmentVariables = z
  .record(text(fieldLimits.variables.nameLength), z.string())
  .refine((value) => Object.keys(value).length <= fieldLimits.variables.count, {
    message: `must have at most ${fieldLimits.variables.count} entries`,
  })
  .refine((value) => byteLengthOf(Object.entries(value).flatMap(given)) <= fieldLimits.variables.totalBytes, {
    message: `must have at most ${fieldLimits.variables.totalBytes} bytes in all`,
  });

/** Unknown fields that an error describes. */
const MAX_UNKNOWN = 10;

/** An object without unknown fields; the error for an unknown field suggests the nearest known one. */
export function knownFields<Shape extends z.core.$ZodLooseShape>(shape: Shape) {
  return z.strictObject(shape, {
    error: (issue) => {
      if (issue.code !== "unrecognized_keys") return undefined;
      // From the schema that failed, because it may have been extended.
      const { shape: known = shape } = (issue.inst as z.ZodObject | undefined) ?? {};
      const keys = issue.keys as readonly string[];
      const described = keys.slice(0, MAX_UNKNOWN).map((key) => unknownField(key, Object.keys(known)));
      return [...described, ...(keys.length > MAX_UNKNOWN ? [`and ${keys.length - MAX_UNKNOWN} more unknown fields`] : [])].join("; ");
    },
  });
}

function unknownField(given: string, known: readonly string[]): string {
  const shown = given.length > 60 ? `${given.slice(0, 60)}...` : given;
  const nearest = nearestName(given, known);
  return nearest === null
    ? `unknown field '${shown}'; known fields are ${known.join(", ")}`
    : `unknown field '${shown}'; did you mean '${nearest}'?`;
}

function given([name, value]: [string, string]): string[] {
  return /^(?:AENV|OTEL)_/.test(name) ? [] : [name, value];
}

function byteLengthOf(texts: readonly string[]): number {
  const encoder = new TextEncoder();
  return texts.reduce((sum, one) => sum + encoder.encode(one).length, 0);
}
