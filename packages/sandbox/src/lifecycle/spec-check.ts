import { type Limit, PlatformError } from "@aenv/contract";
import type { SandboxSpec } from "../engine/engine.ts";

/** The fields and limits of a specification that an engine does not have, with what to say of a sandbox that has one: "starts from a snapshot, which …". */
export type Refusals = { readonly [Field in keyof SandboxSpec | Limit]?: string };

/** Throws for an id that is no file name, for a field that the engine does not have, and if nothing is named to run. */
export function assertValid(spec: SandboxSpec, refusals: Refusals = {}): void {
  const { id, command, image, listening } = spec;
  if (!isSandboxId(id))
    throw new PlatformError("request.invalid", `'${id}' is not a valid sandbox id: use up to 128 letters, digits, '.', '_' and '-'`);
  const fields = { ...spec, ...spec.resources };
  for (const [field, problem] of Object.entries(refusals)) {
    if (fields[field as keyof Refusals] !== undefined) throw unsupported(id, problem);
  }
  if (command.length === 0 && image === undefined && listening?.kind !== "none")
    throw new PlatformError("request.invalid", `sandbox '${id}' has neither a command nor an image to run`);
}

export function unsupported(id: string, problem: string): PlatformError {
  return new PlatformError("sandbox.unsupported", `sandbox '${id}' ${problem}`);
}

/** An id is also the name of a folder, so it must not lead out of its parent. */
export function isSandboxId(id: string): boolean {
  return /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/.test(id);
}
