import { messageOf } from "@aenv/contract";
import type { ProbeResult } from "../host/probe.ts";
import type { ClusterAccess } from "./api/access.ts";
import { KubernetesApi, type KubernetesObject } from "./api/client.ts";
import { isKubernetesError } from "./api/error.ts";
import { policyPath } from "./network.ts";
import { requiredRights } from "./rights.ts";

export interface ClusterProbe {
  readonly access: ClusterAccess;
  readonly namespace: string;
  /** Whether the engine restricts connections by a policy; default: true. */
  readonly networkPolicies?: boolean;
}

interface AccessReview extends KubernetesObject {
  readonly spec: object;
  readonly status?: { readonly allowed?: boolean };
}

const TIMEOUT_MS = 10_000;
const POLICIES = "networkpolicies";

/** Asks the API whether the namespace exists, and whether this account may do all that the engine does. Changes nothing. */
export async function probeCluster({ access, ...place }: ClusterProbe): Promise<ProbeResult> {
  const { namespace } = place;
  const api = new KubernetesApi(access);
  const signal = AbortSignal.timeout(TIMEOUT_MS);
  try {
    const refused = await refusedRights(api, place, signal);
    if (refused.length > 0) {
      const what = refused.map(({ verb, resource }) => `${verb} ${resource}`).join(", ");
      return { ok: false, reason: `its account may not ${what} in namespace ${namespace}` };
    }
    await api.list(`/api/v1/namespaces/${namespace}/pods`, { labelSelector: "aenv.io/home=none" }, signal);
    if (!(await namespaceExists(api, namespace, signal))) return { ok: false, reason: `the namespace ${namespace} does not exist` };
    return { ok: true, detail: `${access.server}, namespace ${namespace}` };
  } catch (error) {
    return { ok: false, reason: signal.aborted ? `${access.server} did not answer within ${TIMEOUT_MS / 1_000} s` : messageOf(error) };
  } finally {
    await api.close();
  }
}

/** Something that the engine does and this account may not do. */
export interface RefusedRight {
  readonly verb: string;
  /** Empty for the core API. */
  readonly group: string;
  /** Such as `pods` or `pods/log`. */
  readonly resource: string;
}

/** Asks the API server about each right that the engine needs. */
export async function refusedRights(
  api: KubernetesApi,
  { namespace, networkPolicies = true }: Omit<ClusterProbe, "access">,
  signal: AbortSignal,
): Promise<readonly RefusedRight[]> {
  const needed = requiredRights.flatMap(({ apiGroups, resources, verbs }) =>
    apiGroups.flatMap((group) => resources.flatMap((resource) => verbs.map((verb) => ({ group, resource, verb })))),
  );
  const asked = needed.filter(({ resource }) => networkPolicies || resource !== POLICIES);
  const answers = await Promise.all(
    asked.map(async (right) => {
      const [resource, subresource] = right.resource.split("/");
      const attributes = { namespace, group: right.group, resource, verb: right.verb, ...(subresource !== undefined && { subresource }) };
      const review = await api.create<AccessReview>(
        "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
        {
          apiVersion: "authorization.k8s.io/v1",
          kind: "SelfSubjectAccessReview",
          metadata: { name: "" },
          spec: { resourceAttributes: attributes },
        },
        signal,
      );
      return review.status?.allowed === true ? null : right;
    }),
  );
  const refused = answers.filter((answer) => answer !== null);
  const mayRead = !refused.some(({ resource, verb }) => resource === POLICIES && verb === "get");
  if (refused.length === 0 || !networkPolicies || !mayRead) return refused;
  // A policy that is installed already, as by the chart, is not created.
  const isThere = (await api.find(policyPath(namespace), signal)) !== null;
  return refused.filter(({ resource, verb }) => !(isThere && resource === POLICIES && verb === "create"));
}

/** True also if this account may not read namespaces: the rights above are in it. */
async function namespaceExists(api: KubernetesApi, namespace: string, signal: AbortSignal): Promise<boolean> {
  try {
    return (await api.find(`/api/v1/namespaces/${namespace}`, signal)) !== null;
  } catch (error) {
    if (isKubernetesError(error, 403)) return true;
    throw error;
  }
}
