import { messageOf } from "@aenv/contract";
import type { ProbeResult } from "../machine/probes.ts";
import type { ClusterAccess } from "./api/access.ts";
import { KubernetesApi, type KubernetesObject } from "./api/client.ts";
import { isKubernetesError } from "./api/error.ts";
import { requiredRights } from "./rights.ts";

export interface ClusterProbe {
  readonly access: ClusterAccess;
  readonly namespace: string;
}

interface AccessReview extends KubernetesObject {
  readonly spec: object;
  readonly status?: { readonly allowed?: boolean };
}

const TIMEOUT_MS = 10_000;

/** Asks the API whether the namespace exists, and whether this account may do all that the engine does. Changes nothing. */
export async function probeCluster({ access, namespace }: ClusterProbe): Promise<ProbeResult> {
  const api = new KubernetesApi(access);
  const signal = AbortSignal.timeout(TIMEOUT_MS);
  try {
    const refused = await refusedRights(api, namespace, signal);
    if (refused.length > 0) return { ok: false, reason: `its account may not ${refused.join(", ")} in namespace ${namespace}` };
    await api.list(`/api/v1/namespaces/${namespace}/pods`, { labelSelector: "aenv.io/home=none" }, signal);
    if (!(await namespaceExists(api, namespace, signal))) return { ok: false, reason: `the namespace ${namespace} does not exist` };
    return { ok: true, detail: `${access.server}, namespace ${namespace}` };
  } catch (error) {
    return { ok: false, reason: signal.aborted ? `${access.server} did not answer within ${TIMEOUT_MS / 1_000} s` : messageOf(error) };
  } finally {
    await api.close();
  }
}

async function refusedRights(api: KubernetesApi, namespace: string, signal: AbortSignal): Promise<string[]> {
  const asked = requiredRights.flatMap(({ apiGroups: [group = ""], resources, verbs }) =>
    resources.flatMap((name) => verbs.map((verb) => ({ group, name, verb }))),
  );
  const answers = await Promise.all(
    asked.map(async ({ group, name, verb }) => {
      const [resource, subresource] = name.split("/");
      const attributes = { namespace, group, resource, verb, ...(subresource !== undefined && { subresource }) };
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
      return review.status?.allowed === true ? null : `${verb} ${name}`;
    }),
  );
  return answers.filter((answer) => answer !== null);
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
