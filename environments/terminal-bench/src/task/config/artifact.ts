import { strip } from "@aenv/benchmark";
import { either, list, object } from "../../fields/containers.ts";
import { before, type Field, InvalidValue, optional, type Parsed, refine, withDefault } from "../../fields/field.ts";
import { text } from "../../fields/scalars.ts";
import type { Edition } from "./network.ts";

const SERVICE_NAME = /^[A-Za-z0-9][A-Za-z0-9_.-]*$/;

/** A service of a compose file, without spaces around it. */
export const serviceName = refine(text, (given, at) => {
  const name = strip(given);
  if (!SERVICE_NAME.test(name)) throw new InvalidValue(at, `'${given}' is not a name of a service`);
  return name;
});

const shape = {
  source: text,
  /** Null for the place that the source gives; an empty text is the same. */
  destination: before((given) => (given === "" ? null : given), optional(text)),
  exclude: withDefault(list(text), []),
  /** The service of a compose task; null is the agent's container. */
  service: optional(serviceName),
};

export type ArtifactConfig = Parsed<typeof shape>;

/** Paths that are collected after the agent: strings or tables. */
export function artifactsField(edition: Edition): Field<readonly (string | ArtifactConfig)[]> {
  const service: Field<string | null> = edition === "later" ? shape.service : { parse: () => null, absent: () => null };
  return withDefault(list(either(text, object({ ...shape, service }))), []);
}
