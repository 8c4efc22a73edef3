import { either, list, object } from "../../fields/containers.ts";
import { type Field, optional, type Parsed, withDefault } from "../../fields/field.ts";
import { text } from "../../fields/scalars.ts";
import type { Edition } from "./network.ts";

const shape = {
  source: text,
  destination: optional(text),
  exclude: withDefault(list(text), []),
  /** The service of a compose task; null is the agent's container. */
  service: optional(text),
};

export type ArtifactConfig = Parsed<typeof shape>;

/** Paths that are collected after the agent: strings or tables. */
export function artifactsField(edition: Edition): Field<readonly (string | ArtifactConfig)[]> {
  const service: Field<string | null> = edition === "later" ? shape.service : { parse: () => null, absent: () => null };
  return withDefault(list(either(text, object({ ...shape, service }))), []);
}
