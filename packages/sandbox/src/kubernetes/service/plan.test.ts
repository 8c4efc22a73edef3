import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { ServiceSpec } from "../../engine/service.ts";
import { objectsOf } from "./objects.ts";
import { actionsFor, isAsDesired } from "./plan.ts";
import { defaultServiceTemplates } from "./templates.ts";
import type { Claim, Deployment, SeenObjects, Service, ServiceObjects } from "./types.ts";

type Mutable = Record<string, unknown>;

const nothing: SeenObjects = { deployment: null, service: null, claim: null };

function desiredFor(change: Partial<ServiceSpec> = {}): ServiceObjects {
  const spec: ServiceSpec = {
    id: "counter",
    owner: "ada",
    environment: { name: "shop", version: "1.0.0" },
    replicas: 1,
    image: "team/shop:1",
    command: [],
    port: 9000,
    healthPath: "/health",
    variables: { GREETING: "hello" },
    storage: { name: "goods", size: "3Gi", mountPath: "/data" },
    requests: { cpu: "1000m" },
    limits: { cpu: "2000m" },
    ...change,
  };
  return objectsOf({ homeId: "home", spec, templates: defaultServiceTemplates, egress: "none", initKey: "KEY" });
}

/** The objects as the API returns them in a list: without their kinds, with defaults, notes of controllers and its way to write numbers. */
function stored(desired: ServiceObjects): SeenObjects {
  const store = <T extends { metadata: object; spec: object }>(object: T): T => {
    const { kind: _, apiVersion: __, ...copy } = JSON.parse(JSON.stringify(object)) as T & Mutable;
    addDefaults(copy.spec as Mutable);
    const metadata = { ...copy.metadata, uid: "u1", resourceVersion: "7", annotations: { ...annotationsOf(copy), "of.a/controller": "1" } };
    return { ...copy, metadata, status: { observedGeneration: 3 } } as unknown as T;
  };
  return {
    deployment: store<Deployment>(desired.deployment),
    service: store<Service>(desired.service),
    claim: desired.claim === null ? null : store<Claim>(desired.claim),
  };
}

function annotationsOf({ metadata }: { metadata: object }): object {
  return (metadata as { annotations?: object }).annotations ?? {};
}

function addDefaults(fields: Mutable): void {
  for (const [name, value] of Object.entries(fields)) {
    if (value === "1000m") fields[name] = "1";
    if (value === "2000m") fields[name] = "2";
    // The API does not add labels.
    if (name === "matchLabels") continue;
    for (const one of Array.isArray(value) ? value : [value]) if (typeof one === "object" && one !== null) addDefaults(one as Mutable);
  }
  fields.someDefault = "of the API";
}

const words = (desired: ServiceObjects, seen: SeenObjects) => actionsFor(desired, seen).map((action) => `${action.do} ${action.kind}`);

describe("the actions for a service", () => {
  it("create what is missing, the claim first", () => {
    expect(words(desiredFor(), nothing)).toEqual(["create claim", "create deployment", "create service"]);
    expect(words(desiredFor({ storage: null }), nothing)).toEqual(["create deployment", "create service"]);
    const there = stored(desiredFor());
    expect(words(desiredFor(), { ...there, service: null })).toEqual(["create service"]);
  });

  it("are none if only the API has added something", () => {
    expect(words(desiredFor(), stored(desiredFor()))).toEqual([]);
  });

  it("replace what has changed in the request, at the version that was seen, and leave the notes of controllers", () => {
    const there = stored(desiredFor());
    for (const change of [{ replicas: 0 }, { image: "team/shop:2" }, { variables: { GREETING: "bye" } }, { limits: { cpu: "3" } }])
      expect(words(desiredFor(change), there), JSON.stringify(change)).toEqual(["replace deployment"]);
    expect(words(desiredFor({ port: 9001 }), there)).toEqual(["replace deployment", "replace service"]);
    const [action] = actionsFor(desiredFor({ replicas: 0 }), there);
    expect(action?.object.metadata).toMatchObject({ resourceVersion: "7", annotations: { "of.a/controller": "1" } });
  });

  it("never change a claim: what it holds stays", () => {
    const storage = { name: "goods", size: "9Gi", mountPath: "/data" };
    expect(words(desiredFor({ storage }), stored(desiredFor()))).toEqual([]);
  });

  it("replace what somebody has added to a list, such as a variable", () => {
    const there = stored(desiredFor());
    const containers = there.deployment?.spec.template.spec.containers ?? [];
    for (const { env } of containers) (env as unknown as object[]).push({ name: "EXTRA", value: "1" });
    expect(words(desiredFor(), there)).toEqual(["replace deployment"]);
  });

  it("make a deployment anew whose selector is another, because the API does not change selectors", () => {
    const there = stored(desiredFor());
    (there.deployment?.spec.selector.matchLabels as Record<string, string>).tier = "old";
    expect(words(desiredFor(), there)).toEqual(["recreate deployment"]);
  });

  it("are found for every single value that somebody changes, and for no other reason", () => {
    const desired = desiredFor();
    const leaves = leavesOf(desired.deployment.spec).filter(([name]) => name !== "app");
    fc.assert(
      fc.property(fc.nat({ max: leaves.length - 1 }), (at) => {
        const there = stored(desired);
        expect(isAsDesired(desired.deployment, there.deployment as Deployment)).toBe(true);
        const path = leaves[at] as readonly string[];
        const parent = path
          .slice(0, -1)
          .reduce<Mutable>((value, key) => value[key] as Mutable, there.deployment?.spec as unknown as Mutable);
        parent[path.at(-1) as string] = "changed by hand";
        expect(isAsDesired(desired.deployment, there.deployment as Deployment), path.join(".")).toBe(false);
      }),
      { numRuns: 200 },
    );
  });
});

function leavesOf(value: object): string[][] {
  return Object.entries(value).flatMap(([name, one]) =>
    typeof one === "object" && one !== null ? leavesOf(one).map((path) => [name, ...path]) : [[name]],
  );
}
