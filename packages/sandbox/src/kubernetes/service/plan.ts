import { isDeepStrictEqual } from "node:util";
import type { KubernetesObject } from "../api/client.ts";
import { quantityValue } from "../pod/quantity.ts";
import type { SeenObjects, ServiceObjects } from "./types.ts";

export type Kind = "claim" | "deployment" | "service";

/** A request to the API. */
export type Action =
  | { readonly do: "create"; readonly kind: Kind; readonly object: KubernetesObject }
  /** The object names the version that it replaces: if somebody was faster, the next round looks again. */
  | { readonly do: "replace"; readonly kind: Kind; readonly object: KubernetesObject }
  /** Needed for a change that the API allows to new objects only. */
  | { readonly do: "recreate"; readonly kind: Kind; readonly object: KubernetesObject; readonly uid: string };

/** What has to be done so that the objects of a service are as they should be. Claims are created, and never changed. */
export function actionsFor(desired: ServiceObjects, seen: SeenObjects): Action[] {
  const actions: Action[] = [];
  if (desired.claim !== null && seen.claim === null) actions.push({ do: "create", kind: "claim", object: desired.claim });
  for (const kind of ["deployment", "service"] as const) {
    const object = desired[kind];
    const found = seen[kind];
    if (found === null) actions.push({ do: "create", kind, object });
    else if (kind === "deployment" && !isSameSelector(desired, seen))
      actions.push({ do: "recreate", kind, object, uid: found.metadata.uid ?? "" });
    else if (!isAsDesired(object, found)) actions.push({ do: "replace", kind, object: replacing(object, found) });
  }
  return actions;
}

/** Whether the API needs no request: what is desired is there, among values that the API has added. */
export function isAsDesired(desired: KubernetesObject, found: KubernetesObject): boolean {
  // Items of a list do not name their kind.
  const { metadata: own, apiVersion: _, kind: __, ...rest } = desired;
  const { labels = {}, annotations = {} } = own;
  return isWithin({ labels, annotations }, found.metadata, []) && isWithin(rest, found, []);
}

function isSameSelector(desired: ServiceObjects, seen: SeenObjects): boolean {
  return isDeepStrictEqual(desired.deployment.spec.selector.matchLabels, seen.deployment?.spec.selector.matchLabels);
}

/** Controllers of the cluster keep notes in annotations, which stay. */
function replacing(object: KubernetesObject, { metadata: found }: KubernetesObject): KubernetesObject {
  const { metadata } = object;
  return {
    ...object,
    metadata: {
      ...metadata,
      labels: { ...found.labels, ...metadata.labels },
      annotations: { ...found.annotations, ...metadata.annotations },
      ...(found.resourceVersion !== undefined && { resourceVersion: found.resourceVersion }),
    },
  };
}

/** Lists must have the same length, so that nothing was added to them; objects may have more fields. */
function isWithin(desired: unknown, found: unknown, path: readonly string[]): boolean {
  if (Array.isArray(desired))
    return (
      isEmpty(desired, found) ||
      (Array.isArray(found) && found.length === desired.length && desired.every((one, at) => isWithin(one, found[at], path)))
    );
  if (typeof desired === "object" && desired !== null) {
    if (isEmpty(desired, found)) return true;
    if (typeof found !== "object" || found === null) return false;
    return Object.entries(desired).every(([name, value]) => isWithin(value, (found as Record<string, unknown>)[name], [...path, name]));
  }
  if (desired === found) return true;
  // The API writes quantities its own way: `1000m` becomes `1`. It leaves out values that are empty.
  if (path.at(-2) === "limits" || path.at(-2) === "requests") return isSameQuantity(desired, found);
  return found === undefined && (desired === "" || desired === undefined);
}

function isEmpty(desired: object, found: unknown): boolean {
  return found === undefined && Object.keys(desired).length === 0;
}

function isSameQuantity(one: unknown, other: unknown): boolean {
  const value = (text: unknown) => quantityValue(String(text), "a quantity");
  try {
    return value(one) === value(other);
  } catch {
    return false;
  }
}
