import type { ChildGrant } from "@aenv/contract";
import type { EnvironmentVersion, Hub, PinnedChild } from "../hub/hub.ts";
import { reexportedTools } from "../hub/publishing/children.ts";
import { NEVER } from "./expiry.ts";
import type { InstanceRow } from "./row.ts";

/** A child in the tree of an instance. */
export interface ChildNode {
  readonly pin: PinnedChild;
  readonly environment: EnvironmentVersion;
  /** Those that are opened when an episode of it begins. */
  readonly below: readonly ChildNode[];
}

/** What begins with an instance of this environment, at all levels. */
export async function treeOf(environment: EnvironmentVersion, hub: Pick<Hub, "pinned">): Promise<readonly ChildNode[]> {
  const pins = environment.children.filter(({ when }) => when !== "demand");
  return Promise.all(
    pins.map(async (pin) => {
      const child = await hub.pinned(pin);
      return { pin, environment: child, below: await treeOf(child, hub) };
    }),
  );
}

/** What an instance of this environment is told about its children. */
export async function childGrants(environment: EnvironmentVersion, hub: Pick<Hub, "pinned">): Promise<readonly ChildGrant[]> {
  return Promise.all(
    environment.children.map(async (pin) => {
      const { name, task = "none", when = "start" } = pin;
      return { name, task, when, reexport: pin.reexport === undefined ? [] : [...reexportedTools(pin, await hub.pinned(pin))] };
    }),
  );
}

/** The row of a child: it lives as long as its parent's episode, and counts for the owner of the root. */
export function asChild(row: InstanceRow, parent: InstanceRow, { name }: PinnedChild): InstanceRow {
  const { freezeSeconds: _, ...common } = row;
  return {
    ...common,
    parent: parent.id,
    root: parent.root ?? parent.id,
    path: parent.path === undefined ? name : `${parent.path}/${name}`,
    group: parent.group,
    ttl: "",
    expiresAt: NEVER,
    idleSeconds: null,
    ...(parent.tokenId !== undefined && { tokenId: parent.tokenId }),
  };
}

/** The name by which the parent calls the child. */
export function nameIn({ path = "" }: Pick<InstanceRow, "path">): string {
  return path.slice(path.lastIndexOf("/") + 1);
}
