import type { KeyObject } from "node:crypto";
import { PlatformError } from "@aenv/contract";
import type { SandboxRuntime } from "../../engine/engine.ts";
import type { SeenServices, ServiceEngine, ServiceSpec, ServiceStatus } from "../../engine/service.ts";
import { initKeyArgument } from "../../init/key.ts";
import type { KubernetesApi, KubernetesObject } from "../api/client.ts";
import { isKubernetesError } from "../api/error.ts";
import type { NodeImages } from "../node-images.ts";
import type { Pod } from "../pod/types.ts";
import { egressOf } from "../validate.ts";
import { ReplicaBundles } from "./bundles.ts";
import { HOME_LABEL, OWNER_ANNOTATION, objectsOf, SERVICE_LABEL } from "./objects.ts";
import { type Action, actionsFor, type Kind } from "./plan.ts";
import { statusOf } from "./status.ts";
import type { ServiceTemplates } from "./templates.ts";
import type { Claim, Deployment, Service, ServiceObjects } from "./types.ts";

export interface KubernetesServicesOptions {
  readonly namespace: string;
  /** Servers with the same one look after the same services. */
  readonly homeId: string;
  readonly templates: ServiceTemplates;
  /** What follows the namespace in the names of the cluster, such as `svc.cluster.local`. */
  readonly domainSuffix: string;
  /** Makes sure that pods without outgoing connections have none; undefined if connections are not restricted. */
  readonly ensurePolicy?: (() => Promise<void>) | undefined;
  readonly baseImage: string;
  readonly images: NodeImages;
  /** Proves to the inits of replicas with a bundle who connects. */
  readonly initKey: KeyObject;
  readonly runtime?: SandboxRuntime | undefined;
  readonly runscClass?: string | undefined;
  readonly unschedulableMs: number;
}

/** The name of a Service is a name in DNS. */
const NAME = /^[a-z](?:[a-z0-9-]{0,61}[a-z0-9])?$/;

const APIS: Readonly<Record<Kind, readonly [api: string, resource: string, word: string]>> = {
  claim: ["/api/v1", "persistentvolumeclaims", "PersistentVolumeClaim"],
  deployment: ["/apis/apps/v1", "deployments", "Deployment"],
  service: ["/api/v1", "services", "Service"],
};

/** Services that are a Deployment and a Service of a cluster, with a PersistentVolumeClaim for their storage. */
export class KubernetesServices implements ServiceEngine {
  readonly location: string;
  readonly baseImage: string;
  readonly #bundles: ReplicaBundles;
  readonly #api: KubernetesApi;
  readonly #options: KubernetesServicesOptions;

  constructor(api: KubernetesApi, options: KubernetesServicesOptions) {
    this.#api = api;
    this.#options = options;
    this.#bundles = new ReplicaBundles(options.initKey);
    this.baseImage = options.baseImage;
    this.location = `kubernetes:${options.namespace}/${options.homeId}`;
  }

  urlOf(id: string, port: number): string {
    const { namespace, domainSuffix } = this.#options;
    return `${id}.${namespace}.${domainSuffix}:${port}`;
  }

  async admit(spec: ServiceSpec): Promise<void> {
    const { id, storage } = spec;
    if (!NAME.test(id))
      throw new PlatformError(
        "request.invalid",
        `'${id}' cannot be the name of a Service of Kubernetes: use up to 63 lower-case letters, digits and '-', beginning with a letter`,
      );
    if (storage !== null && spec.replicas > 1)
      throw new PlatformError("request.invalid", "When creating PVC (storageSize specified), replicas must be 1");
    const { claim } = this.#objectsOf(spec);
    await this.#options.images.assertAllowed([spec.image]);
    if (claim !== null) assertOwner(await this.#find<Claim>("claim", claim.metadata.name), spec);
  }

  async look(id?: string): Promise<SeenServices> {
    const labelSelector = [`${HOME_LABEL}=${this.#options.homeId}`, ...(id === undefined ? [] : [`${SERVICE_LABEL}=${id}`])].join(",");
    const [deployments, services, pods] = await Promise.all([
      this.#api.list<Deployment>(this.#path("deployment"), { labelSelector }),
      this.#api.list<Service>(this.#path("service"), { labelSelector }),
      this.#api.list<Pod>(`/api/v1/namespaces/${this.#options.namespace}/pods`, { labelSelector }),
    ]);
    const ids = new Set([...deployments.items, ...services.items].map(serviceIdOf));
    return {
      ids: [...ids],
      apply: (spec) =>
        this.#apply(
          spec,
          deployments.items.find((one) => serviceIdOf(one) === spec.id) ?? null,
          services.items.find((one) => serviceIdOf(one) === spec.id) ?? null,
          pods.items.filter((one) => serviceIdOf(one) === spec.id),
        ),
    };
  }

  async remove(id: string): Promise<void> {
    const labelSelector = `${HOME_LABEL}=${this.#options.homeId},${SERVICE_LABEL}=${id}`;
    for (const kind of ["deployment", "service"] as const) {
      const { items } = await this.#api.list(this.#path(kind), { labelSelector });
      for (const { metadata } of items)
        await this.#api.delete(this.#path(kind, metadata.name), { ...(metadata.uid && { uid: metadata.uid }) });
    }
  }

  async removeStorage(name: string, owner: string): Promise<void> {
    const claim = await this.#find<Claim>("claim", name);
    const { uid, labels, annotations } = claim?.metadata ?? {};
    // A claim of the operator, or of another owner, is not the platform's to delete.
    if (labels?.[HOME_LABEL] !== this.#options.homeId || annotations?.[OWNER_ANNOTATION] !== owner) return;
    await this.#api.delete(this.#path("claim", name), { ...(uid && { uid }) });
  }

  /** Stops sending bundles. */
  close(): Promise<void> {
    return this.#bundles.close();
  }

  async #apply(spec: ServiceSpec, deployment: Deployment | null, service: Service | null, pods: readonly Pod[]): Promise<ServiceStatus> {
    const desired = this.#objectsOf(spec);
    const claim = desired.claim === null ? null : await this.#find<Claim>("claim", desired.claim.metadata.name);
    assertOwner(claim, spec);
    const actions = actionsFor(desired, { deployment, service, claim });
    if (actions.length > 0) await this.#options.ensurePolicy?.();
    let latest = deployment;
    for (const action of actions) {
      const made = await this.#run(action);
      if (action.kind === "deployment") latest = (made as Deployment | null) ?? latest;
    }
    const problem = spec.bundle === undefined ? null : this.#bundles.send(spec.id, spec.bundle, pods);
    const status = statusOf(latest, pods, spec.port, Date.now(), this.#options.unschedulableMs);
    return { ...status, reason: status.reason ?? problem };
  }

  /** The object as it is now; null if somebody else was faster. */
  async #run(action: Action): Promise<KubernetesObject | null> {
    const { kind, object } = action;
    const { name } = object.metadata;
    try {
      switch (action.do) {
        case "replace":
          return await this.#api.replace(this.#path(kind, name), object);
        case "recreate":
          await this.#api.delete(this.#path(kind, name), { uid: action.uid });
          return await this.#api.create(this.#path(kind), object);
        case "create":
          return await this.#api.create(this.#path(kind), object);
      }
    } catch (error) {
      if (!isKubernetesError(error, 404, 409)) throw explained(error, kind, name, this.#options.namespace);
      if (kind !== "claim") await this.#assertOwn(kind, name);
      return null;
    }
  }

  /** Objects of others are never changed. */
  async #assertOwn(kind: Kind, name: string): Promise<void> {
    const { namespace, homeId } = this.#options;
    const found = await this.#find(kind, name);
    if (found === null || found.metadata.labels?.[HOME_LABEL] === homeId) return;
    throw new PlatformError(
      "service.exists",
      `the namespace ${namespace} has a ${APIS[kind][2]} '${name}' that is not of this platform; choose another name for the service, or delete it`,
    );
  }

  #objectsOf(spec: ServiceSpec): ServiceObjects {
    const { homeId, templates, ensurePolicy, initKey, runtime, runscClass } = this.#options;
    const isRunsc = (spec.runtime ?? runtime) === "runsc";
    return objectsOf({
      homeId,
      spec,
      templates,
      egress: ensurePolicy === undefined ? "open" : egressOf(spec),
      initKey: initKeyArgument(initKey),
      runtimeClass: isRunsc ? runscClass : undefined,
    });
  }

  #find<T extends KubernetesObject>(kind: Kind, name: string): Promise<T | null> {
    return this.#api.find<T>(this.#path(kind, name));
  }

  #path(kind: Kind, name?: string): string {
    const [api, resource] = APIS[kind];
    return `${api}/namespaces/${this.#options.namespace}/${resource}${name === undefined ? "" : `/${name}`}`;
  }
}

function serviceIdOf({ metadata }: KubernetesObject): string {
  return metadata.labels?.[SERVICE_LABEL] ?? "";
}

/** Storage of one owner is not shown to another. An operator's own claim says whom it is for. */
function assertOwner(claim: Claim | null, { owner, storage }: ServiceSpec): void {
  if (claim === null) return;
  const whose = claim.metadata.annotations?.[OWNER_ANNOTATION];
  if (whose === owner || whose === "*") return;
  throw new PlatformError(
    "request.invalid",
    `the storage '${storage?.name}' is not one of '${owner}'; choose another name for it${whose === undefined ? `, or have its operator annotate the PersistentVolumeClaim with ${OWNER_ANNOTATION}` : ""}`,
  );
}

function explained(error: unknown, kind: Kind, name: string, namespace: string): unknown {
  if (!isKubernetesError(error)) return error;
  const what = `the ${APIS[kind][2]} '${name}' of the service cannot be made in namespace ${namespace}`;
  return new PlatformError("sandbox.start_failed", `${what}: ${error.message}`, { cause: error });
}
