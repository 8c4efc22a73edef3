import {
  type ChildUse,
  isReexported,
  MAX_CHILD_DEPTH,
  MAX_REEXPORTED_NAME,
  MAX_TREE_INSTANCES,
  messageOf,
  PlatformError,
  reexportedName,
  type ToolDescriptor,
} from "@aenv/contract";
import type { Caller } from "../../access/access.ts";
import type { EnvironmentVersion, Metadata, PinnedChild } from "../versions/environment-version.ts";
import type { Publication } from "./publication.ts";

export interface ChildResolver {
  /** The version that a reference means for this caller. */
  readonly resolve: (ref: string, caller: Caller) => Promise<EnvironmentVersion>;
  /** A version that another one was published with, whoever may see it. */
  readonly pinned: (child: PinnedChild) => Promise<EnvironmentVersion>;
}

/** A child that is published with its parent, and the version of it. */
export interface ResolvedChild {
  readonly pin: PinnedChild;
  readonly environment: EnvironmentVersion;
}

/**
 * Resolves `deployConfig.uses` for the publisher. Later instances have these versions, whatever is published meanwhile. A child that the
 * publisher does not see, an environment that contains itself and a tree that is too large are refused.
 */
export async function resolveChildren(publication: Publication, caller: Caller, resolver: ChildResolver): Promise<ResolvedChild[]> {
  const { name, version, config, bundleDigest } = publication;
  const uses = config.deployConfig?.uses ?? [];
  if (uses.length === 0) return [];
  if (config.runtime !== undefined || bundleDigest === null)
    throw invalid("deployConfig.uses needs an environment in TypeScript: a program has no kit, which opens the children");
  const resolved: ResolvedChild[] = [];
  for (const use of uses) resolved.push(await resolveOne(use, caller, resolver));
  const path = [{ name, version }];
  let count = 1;
  const walk = async ({ environment, pin }: ResolvedChild, above: readonly { name: string; version: string }[]): Promise<void> => {
    const here = [...above, environment];
    const shown = here.map((one) => `${one.name}@${one.version}`).join(" -> ");
    if (above.some((one) => one.name === environment.name))
      throw invalid(`deployConfig.uses: '${pin.name}' leads back to '${environment.name}': ${shown}; an environment cannot contain itself`);
    if (here.length > MAX_CHILD_DEPTH)
      throw invalid(
        `deployConfig.uses: ${shown} has more than ${MAX_CHILD_DEPTH} levels, the limit; use fewer environments below each other`,
      );
    if (++count > MAX_TREE_INSTANCES)
      throw invalid(
        `deployConfig.uses: an instance would have more than ${MAX_TREE_INSTANCES} instances in its tree, the limit; use fewer`,
      );
    for (const below of environment.children) await walk({ pin: below, environment: await resolver.pinned(below) }, here);
  };
  for (const one of resolved) await walk(one, path);
  return resolved;
}

async function resolveOne({ env, ...use }: ChildUse, caller: Caller, { resolve }: ChildResolver): Promise<ResolvedChild> {
  const environment = await resolve(env, caller).catch((cause: unknown) => {
    throw invalid(`deployConfig.uses: '${use.name}' is '${env}', which cannot be resolved: ${messageOf(cause)}`, cause);
  });
  const { name, version, contentDigest } = environment;
  return { environment, pin: { ...use, environment: { name, version }, contentDigest } };
}

/** The description of an environment with the tools of its children that it re-exports. */
export function withReexported(metadata: Metadata | null, children: readonly ResolvedChild[]): Metadata | null {
  const added = children.flatMap(({ pin, environment }) =>
    reexportedTools(pin, environment).map((tool) => ({ ...tool, name: reexportedName(pin.name, tool.name) })),
  );
  const taken = new Set(metadata?.tools.map(({ name }) => name));
  for (const { name } of added) {
    if (name.length > MAX_REEXPORTED_NAME)
      throw invalid(
        `deployConfig.uses: the tool '${name}' has ${name.length} characters, and models take ${MAX_REEXPORTED_NAME}; choose a shorter name for the child`,
      );
    if (taken.has(name)) throw invalid(`deployConfig.uses: two tools would have the name '${name}'; rename one`);
    taken.add(name);
  }
  return metadata === null || added.length === 0 ? metadata : { ...metadata, tools: [...metadata.tools, ...added] };
}

/** The tools of a child that its parent re-exports, as the child describes them. */
export function reexportedTools(pin: PinnedChild, { name, version, metadata }: EnvironmentVersion): readonly ToolDescriptor[] {
  const { reexport = [] } = pin;
  if (reexport.length === 0) return [];
  if (metadata === null)
    throw invalid(
      `deployConfig.uses: the tools of '${pin.name}' cannot be re-exported, because ${name}@${version} was published without being verified`,
    );
  const known = metadata.tools.map((tool) => tool.name);
  for (const wanted of reexport)
    if (wanted !== "*" && !known.includes(wanted))
      throw invalid(`deployConfig.uses: ${name}@${version} has no tool '${wanted}' to re-export; it has ${known.join(", ") || "none"}`);
  return metadata.tools.filter((tool) => isReexported(pin, tool.name));
}

function invalid(message: string, cause?: unknown): PlatformError {
  return new PlatformError("environment.invalid", message, { cause, details: { field: "deployConfig.uses" } });
}
